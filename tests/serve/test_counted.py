"""What is repaired or odd is counted, and the counts can be seen."""

from afoot.core.ports import Run
from tests.serve.double import faked, site_of, talk, wanted


async def backwards(run: Run) -> str:
    """Reports as no tool should."""
    for number in (5, 3, 4):
        run.report(number, 10, None)
    return "done"


@faked
async def test_repaired_reports_are_counted() -> None:
    """P4: what was repaired is counted and visible; what nobody was sent needed no repair."""
    async with site_of(backwards, settings={"progress_hz": 0}) as site:
        await talk(site, wanted())
        assert site.counted == {}
        await talk(site, wanted(token="t"))
        assert site.counted == {"reports repaired": 2}
