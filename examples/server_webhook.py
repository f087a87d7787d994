"""A webhook from a server: the receiver fails first, the server retries, and shows the history.

Needs a server (`duetime serve`, or `make run` in a clone) at DUETIME_URL or http://localhost:7928:

    python examples/server_webhook.py
"""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from duetime.client.http.client import Client


class Shop(BaseHTTPRequestHandler):
    """Answers 503 to the first delivery, and the later ones with a result."""

    def do_POST(self) -> None:
        webhook = json.loads(self.rfile.read(int(self.headers["content-length"])))
        print(f"delivery {webhook['delivery']} of {webhook['payload']}, {webhook['lateMs']} ms late")
        answer = b'{"shipped": true}' if webhook["delivery"] > 1 else b""
        self.send_response(200 if answer else 503)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, format: str, *args: object) -> None: ...


def main() -> None:
    shop = ThreadingHTTPServer(("127.0.0.1", 0), Shop)
    threading.Thread(target=shop.serve_forever, daemon=True).start()
    with Client() as client:
        intent = client.create(
            delay_ms=2000,
            callback={"url": f"http://127.0.0.1:{shop.server_port}/ship"},
            payload={"order": 7},
            redelivery={"max_attempts": 5, "initial_delay_ms": 200},
        ).wait()
        print(client.why(intent.intent_id).wait().sentence)
        for event in client.events(intent_id=intent.intent_id):  # from now on; it is not due yet
            if event.status in ("ACKED", "DEAD_LETTERED"):
                break
        print([str(entry.status) for entry in client.history(intent.intent_id).wait().entries])
        print("result:", client.get(intent.intent_id).wait().result)


if __name__ == "__main__":
    main()
