# One image for all daemons and commands, built from this source: `docker-compose up --build`. BASE: any image with Python >= 3.11, glibc and the venv module;
# `tests/compose/make_base_image` makes one from Debian's packages where none can be pulled. What the lock names is fetched while the image is built, from the
# registry that PIP_INDEX_URL names, if it is given; or not at all if it is in build/wheels, where `make compose-image` puts it. pyarrow is half of it, and
# only replays write their results with it, which are not for containers.
ARG BASE=python:3.11-slim

FROM ${BASE} AS build
ARG PIP_INDEX_URL
# The brackets: there need not be such a folder.
COPY requirements.lock build/wheel[s] /locked/
RUN python3 -m venv /opt/understudy \
 && if ls /locked/*.whl >/dev/null 2>&1; then export PIP_NO_INDEX=1 PIP_FIND_LINKS=/locked; fi \
 && /opt/understudy/bin/python -m pip install --quiet --disable-pip-version-check --no-cache-dir --require-hashes --requirement /locked/requirements.lock
COPY . /source
RUN /opt/understudy/bin/python -m pip install --quiet --disable-pip-version-check --no-index --no-deps --no-build-isolation /source \
 && /opt/understudy/bin/python -m understudy.tool.cluster.starters \
 && /opt/understudy/bin/python -m pip uninstall --quiet --yes pyarrow pip setuptools \
 && find /opt/understudy -name tests -type d -prune -exec rm -rf {} +

FROM ${BASE}
COPY --from=build /opt/understudy /opt/understudy
COPY examples/compose.conf /etc/understudy/slurm.conf
# slurm runs the daemons and is the cluster's administrator; `user` is anybody.
RUN groupadd --gid 64030 slurm && useradd --uid 64030 --gid slurm --home-dir /var/lib/understudy --create-home slurm \
 && useradd --uid 1000 --create-home --shell /bin/bash user \
 && for name in clock controller accounting noded0 noded1 agent; do install -d -o slurm -g slurm -m 700 "/keys/$name"; done \
 && install -d -o slurm -g slurm -m 700 /site /key && chmod 755 /var/lib/understudy
ENV PATH=/opt/understudy/bin:/usr/local/bin:/usr/bin:/bin \
    SLURM_CONF=/var/lib/understudy/slurm.conf \
    UNDERSTUDY_REGISTRY=/var/lib/understudy/registry
USER slurm
WORKDIR /tmp
ENTRYPOINT ["understudy"]
CMD ["--help"]
