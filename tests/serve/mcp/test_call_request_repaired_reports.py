"""What is repaired or odd is counted, and the counts can be seen."""

from afoot.core.ports import Run
from tests.serve.fake_gateway import call_request, faked, site_of, wanted


async def backwards(run: Run) -> str:
    """Reports as no tool should."""
    for number in (5, 3, 4):
        run.report(number, 10, None)
    return "done"


@faked
async def test_repaired_reports_are_counted() -> None:
    """P4: what was repaired is counted and visible; what nobody was sent needed no repair."""
    async with site_of(backwards, settings={"progress_hz": 0}) as gateway:
        await call_request(gateway, wanted())
        assert gateway.counters == {}
        await call_request(gateway, wanted(token="t"))
        assert gateway.counters == {"reports repaired": 2}
