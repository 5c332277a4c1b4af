"""The responses of the routes for operators and Reberth: JSON, or a sentence that describes the error."""

import msgspec
from aiohttp import web


def json_response(body: object, *, status: int = 200) -> web.Response:
    return web.Response(status=status, body=msgspec.json.encode(body), content_type="application/json")


def bad_request(text: str) -> web.Response:
    return web.Response(status=400, text=f"{text}\n")
