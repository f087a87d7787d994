"""A program without asyncio: `with app`, and `.wait()` instead of `await`.

python examples/plain_script.py
"""

from datetime import timedelta

from duetime import App

app = App("example-data")


@app.task
def resize(name: str, width: int) -> str:
    return f"{name} at {width}"


@app.task
def publish(name: str) -> str:
    return f"{name} is out"


if __name__ == "__main__":
    with app:
        sizes = resize.schedule_many([("cat.png", width) for width in (100, 200, 400)]).wait()
        done = publish.options(after=sizes).schedule("cat.png").wait()
        print(done.result("10s").wait())
        print([handle.result().wait() for handle in sizes])

        reminder = resize.delay(timedelta(days=1)).schedule("dog.png", 100).wait()
        print(reminder.why().wait().sentence)
        print(reminder.cancel().wait().status.name)
