"""What concerns the gateway as a process: its end, its event loop, its service manager."""
