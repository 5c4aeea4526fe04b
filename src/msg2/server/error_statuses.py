"""What an error is answered with: a status of HTTP, and a sentence."""

from fastapi.exceptions import RequestValidationError
from pydantic import ValidationError
from starlette.exceptions import HTTPException

from msg2.errors import InputError
from msg2.server.jobs import QueueFullError
from msg2.server.sandbox import CallCancelledError, disk_full_error, is_disk_full, is_transient
from msg2.server.schemas import ID_PATTERN
from msg2.server.workspace import ConflictError, NotFoundError

_STATUSES = {NotFoundError: 404, ConflictError: 409, QueueFullError: 429}


def explain_error(error: Exception) -> tuple[int, InputError]:
    """Return the status of an error, and what to say of it; of what is in nobody's hands, 500 and no more."""
    match error:
        case InputError() | OSError() if is_disk_full(error):
            return 507, disk_full_error()
        case InputError() | OSError() if is_transient(error):
            return 503, InputError("the server has too much to do at the moment", hint="try again in some seconds")
        case InputError():
            return next((status for kind, status in _STATUSES.items() if isinstance(error, kind)), 400), error
        case RequestValidationError() | ValidationError():  # the first of the complaints: where, and what
            first = error.errors()[0]
            wrong_id = first["type"] == "string_pattern_mismatch" and first["ctx"]["pattern"] == ID_PATTERN
            what = "is no id: an id has 32 characters, 0 to 9 and a to f" if wrong_id else first["msg"]
            return 422, InputError(what, where=".".join(map(str, first["loc"])) or None)
        case HTTPException():
            detail = "there is nothing at this address" if error.status_code == 404 else error.detail
            return error.status_code, InputError(detail)
        case CallCancelledError():
            return 503, InputError("the server is ending")
    return 500, InputError("msg2 has failed at this, its log says why")
