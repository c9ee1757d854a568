"""A proxy that shows a server of this machine below a path, as JupyterHub and code-server do."""

import http.client
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@contextmanager
def proxied(port: int, prefix: str) -> Iterator[int]:
    """Pass what is asked below `prefix` on to a port, without the prefix; yield the proxy's port.

    The other headers stay, `Host` too, and nothing else is answered.
    """

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            if not self.path.startswith(prefix):
                self.send_error(404)
                return
            client = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
            client.putrequest("GET", self.path.removeprefix(prefix[:-1]), skip_host=True)
            for name, value in self.headers.items():
                if name.lower() not in ("connection", "accept-encoding"):
                    client.putheader(name, value)
            client.endheaders()
            answer = client.getresponse()
            self.send_response(answer.status)
            for name, value in answer.getheaders():
                if name.lower() not in ("transfer-encoding", "connection"):
                    self.send_header(name, value)
            self.end_headers()
            try:
                while part := answer.read1(65_536):
                    self.wfile.write(part)
                    self.wfile.flush()
            except OSError:
                pass  # the browser has gone
            finally:
                client.close()

        def log_message(self, *_: object) -> None:
            pass

    with _serving(Handler) as found:
        yield found


@contextmanager
def linking_to(address: str) -> Iterator[int]:
    """Serve a page of another site with a link; yield its port."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = f'<a id="link" href="{address}">look</a>'.encode()
            self.send_response(200)
            self.send_header("content-type", "text/html")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    with _serving(Handler) as found:
        yield found


@contextmanager
def _serving(handler: type[BaseHTTPRequestHandler]) -> Iterator[int]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
