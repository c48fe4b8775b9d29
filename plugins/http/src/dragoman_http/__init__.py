"""An HTTP listener for dragoman."""
