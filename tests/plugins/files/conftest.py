"""PDFs that are made where they are needed."""

import zlib

import attrs
import pytest

FONT = b"/Type/Font/Subtype/Type1/BaseFont/Helvetica"


@attrs.define
class Pdf:
    """Puts a PDF together object by object; object 1 is the catalogue, 2 the root of the pages."""

    objects: list[bytes] = attrs.field(factory=lambda: [b"<</Type/Catalog/Pages 2 0 R>>", b""])

    def add(self, content: bytes) -> int:
        self.objects.append(content)
        return len(self.objects)

    def stream(self, data: bytes, entries: bytes = b"") -> int:
        return self.add(b"<<%s/Length %d>>stream\n%s\nendstream" % (entries, len(data), data))

    def page(self, content: int, resources: bytes = b"") -> int:
        return self.add(
            b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 300 300]/Contents %d 0 R"
            b"/Resources<</Font<</F<<%s>>>>%s>>>>" % (content, FONT, resources)
        )

    def bytes(self, pages: list[int]) -> bytes:
        kids = b" ".join(b"%d 0 R" % page for page in pages)
        self.objects[1] = b"<</Type/Pages/Count %d/Kids[%s]>>" % (len(pages), kids)
        data, places = bytearray(b"%PDF-1.7\n"), []
        for number, content in enumerate(self.objects, 1):
            places.append(len(data))
            data += b"%d 0 obj\n%s\nendobj\n" % (number, content)
        table = b"".join(b"%010d 00000 n \n" % place for place in places)
        size = len(places) + 1
        return bytes(data) + (
            b"xref\n0 %d\n0000000000 65535 f \n%strailer<</Size %d/Root 1 0 R>>\nstartxref\n%d\n%%%%EOF"
            % (size, table, size, len(data))
        )


def words(text: str) -> bytes:
    return b"BT /F 12 Tf 20 200 Td (%s) Tj ET" % text.encode("latin-1")


def pdf_of(*texts: str) -> bytes:
    """A PDF with one page for each text."""
    pdf = Pdf()
    contents = {text: pdf.stream(words(text)) for text in dict.fromkeys(texts)}
    return pdf.bytes([pdf.page(contents[text]) for text in texts])


def bomb(size: int) -> bytes:
    """A page whose stream becomes ``size`` bytes, and one that is well."""
    packer = zlib.compressobj(9)
    begin = packer.flush(zlib.Z_FULL_FLUSH)
    block = packer.compress(b" " * 1_000_000) + packer.flush(zlib.Z_FULL_FLUSH)
    data = begin + block * (size // 1_000_000) + packer.compress(words("late")) + packer.flush()
    pdf = Pdf()
    first = pdf.page(pdf.stream(data, b"/Filter/FlateDecode"))
    return pdf.bytes([first, pdf.page(pdf.stream(words("after")))])


def endless_tree() -> bytes:
    """The root of the pages is its own child."""
    return Pdf().bytes([2, 2])


def endless_forms() -> bytes:
    """A form that draws itself, twice."""
    pdf = Pdf()
    number = len(pdf.objects) + 1
    pdf.stream(
        b"/X Do /X Do",
        b"/Type/XObject/Subtype/Form/BBox[0 0 9 9]/Resources<</XObject<</X %d 0 R>>>>" % number,
    )
    content = pdf.stream(words("before") + b" /X Do /X Do")
    return pdf.bytes([pdf.page(content, b"/XObject<</X %d 0 R>>" % number)])


@pytest.fixture
def pdfs():
    """Makes PDFs: ``of(*texts)``, ``bomb(size)``, ``endless_tree()``, ``endless_forms()``."""

    class Made:
        of = staticmethod(pdf_of)
        bomb = staticmethod(bomb)
        endless_tree = staticmethod(endless_tree)
        endless_forms = staticmethod(endless_forms)

    return Made
