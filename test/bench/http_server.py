"""Answers calls by HTTP on the Unix socket given: the body is an array of float32, as JSON or as its bytes, and the
answer its last element as JSON."""

import http.server
import json
import socketserver
import sys
import threading

import numpy as np


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"  # connections stay
    wbufsize = -1  # the answer is sent at once

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        x = np.array(json.loads(body), "f4") if self.path == "/json" else np.frombuffer(body, "f4")
        answer = json.dumps(float(x[-1])).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *_):
        pass


class Server(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    daemon_threads = True


with Server(sys.argv[1], Handler) as server:
    threading.Thread(target=server.serve_forever).start()
    print("ready", flush=True)
    sys.stdin.read()
    server.shutdown()
