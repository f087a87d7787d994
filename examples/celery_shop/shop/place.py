"""Places orders, and waits for them: `python -m shop.place 3`."""

from __future__ import annotations

import sys

from shop.app import app
from shop.orders import place


def main(count: int) -> None:
    results = [place(f"order-{number}", "book", 1_900) for number in range(count)]
    for result in results:
        print(result.get(timeout=60))
    app.close()


if __name__ == "__main__":
    main(int(sys.argv[1]))
