"""A server in this process, for the tests of downloads."""

import http.server
import threading


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        site = self.server.site
        site.requests.append(self.path)
        status, body, *headers = site.pages.get(self.path.partition("?")[0], (404, b""))
        if "page=" in self.path and not self.path.endswith("page=1"):
            body = b"[]"
        self.send_response(status)
        self.send_header("Content-Length", str(len(body) + site.missing))
        for name, value in headers:
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args: object) -> None:
        pass


class Site:
    """Serves `pages`, whose values are a status, a body and maybe headers, by path.

    It says of each that it is longer than it is by `missing` bytes.
    """

    def __init__(self) -> None:
        self.pages = {}
        self.requests = []
        self.missing = 0
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.site = self
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, args=(0.01,), daemon=True).start()

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()
