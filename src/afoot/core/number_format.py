"""`format_number`, `format_share` and `format_size` write numbers as people do."""

_POWERS = 1e21  # from here on with powers of ten, as browsers do
_SIZES = (("GB", 10**9), ("MB", 10**6), ("kB", 10**3), ("bytes", 1))


def format_number(value: float) -> str:
    """A number; a whole or a large one has no point and no power of ten."""
    is_whole = abs(value) < _POWERS and (value % 1 == 0 or abs(value) >= 1e6)
    return str(round(value)) if is_whole else f"{value:.6g}"


def format_share(progress: float, total: float) -> str:
    """Progress that child calls have made, for people: the sums of their weights mean nothing to them."""
    return f"{min(100.0, max(0.0, 100 * progress / total)):.0f} %"


def format_size(count: int) -> str:
    """A number of bytes in the unit in which somebody is likely to have set it: 500 MB, 2 GiB."""
    for name, unit in (("GiB", 1024**3), ("MiB", 1024**2)):
        if count >= unit and count % unit == 0:
            return f"{count // unit} {name}"
    name, unit = next(one for one in _SIZES if count >= 0.9995 * one[1] or one[1] == 1)
    return f"{count / unit:.3g} {name}"
