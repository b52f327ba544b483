"""Numbers as people write them."""

_POWERS = 1e21  # from here on with powers of ten, as browsers do
_SIZES = (("GB", 10**9), ("MB", 10**6), ("kB", 10**3), ("bytes", 1))


def figure(value: float) -> str:
    """A number: what is whole, or large, without a point and without powers of ten."""
    is_whole = abs(value) < _POWERS and (value % 1 == 0 or abs(value) >= 1e6)
    return str(round(value)) if is_whole else f"{value:.6g}"


def size(count: int) -> str:
    """So many bytes, as whoever set them has written them: 500 MB, 2 GiB."""
    for name, unit in (("GiB", 1024**3), ("MiB", 1024**2)):
        if count >= unit and count % unit == 0:
            return f"{count // unit} {name}"
    name, unit = next(one for one in _SIZES if count >= 0.9995 * one[1] or one[1] == 1)
    return f"{count / unit:.3g} {name}"
