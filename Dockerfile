# One image for all daemons; the command chooses. Built without network access to anything but PyPI.
# docs/security.md says how to pin the base, to sign the image and to have it checked.
ARG BASE=python:3.13-slim
FROM ${BASE} AS build
WORKDIR /src
COPY requirements/run.txt requirements/dev.txt requirements/
RUN python -m venv /build && /build/bin/pip install --no-cache-dir --require-hashes -r requirements/dev.txt \
 && python -m venv --without-pip /app \
 && /build/bin/pip --python /app/bin/python install --no-cache-dir --require-hashes -r requirements/run.txt
COPY pyproject.toml README.md LICENSE CHANGELOG.md ./
COPY reberth reberth
COPY extender extender
COPY federation federation
COPY rescheduler rescheduler
COPY kubectl_reberth kubectl_reberth
RUN /build/bin/python -m build --no-isolation --wheel --outdir /dist \
 && /build/bin/pip --python /app/bin/python install --no-cache-dir --no-deps /dist/*.whl

FROM ${BASE}
# Nothing is installed into a container that runs.
RUN python -m pip uninstall --yes --root-user-action=ignore pip \
 && rm -r "$(python -c 'import ensurepip; print(*ensurepip.__path__)')"
# Makes the certificates (docs/certificates.md); it comes with Debian's ca-certificates.
RUN openssl version
COPY --from=build /app /app
USER 65532:65532
# -I: neither the working folder nor the environment can put code under our import names.
ENTRYPOINT ["/app/bin/python", "-I", "-m"]
CMD ["reberth"]
