# One image for all daemons and commands, built from this source: `docker-compose up --build`. BASE: any image with Python >= 3.11, glibc and the venv module;
# `tests/compose/make_base_image` makes one from Debian's packages where none can be pulled. What the lock names is fetched while the image is built, from the
# registry that PIP_INDEX_URL names, if it is given; or not at all if it is in build/wheels, where `make compose-image` puts it.
# A stage of its own is PostgreSQL, for accounting: Debian's, if BASE has none.
ARG BASE=python:3.11-slim

FROM ${BASE} AS build
ARG PIP_INDEX_URL
# The brackets: there need not be such a folder.
COPY requirements-postgresql.lock build/wheel[s] /locked/
RUN python3 -m venv /opt/understudy \
 && if ls /locked/*.whl >/dev/null 2>&1; then export PIP_NO_INDEX=1 PIP_FIND_LINKS=/locked; fi \
 && /opt/understudy/bin/python -m pip install --quiet --disable-pip-version-check --no-cache-dir --require-hashes --requirement /locked/requirements-postgresql.lock
COPY . /source
RUN /opt/understudy/bin/python -m pip install --quiet --disable-pip-version-check --no-index --no-deps --no-build-isolation /source \
 && /opt/understudy/bin/python -m understudy.tool.cluster.starters \
 && /opt/understudy/bin/python -m pip uninstall --quiet --yes pip setuptools \
 && find /opt/understudy -name tests -type d -prune -exec rm -rf {} +

FROM ${BASE} AS users
# slurm runs the daemons and is the cluster's administrator; `user` is anybody. Volumes that begin empty belong to whom these folders do.
RUN groupadd --gid 64030 slurm && useradd --uid 64030 --gid slurm --home-dir /var/lib/understudy --create-home slurm \
 && useradd --uid 1000 --create-home --shell /bin/bash user \
 && for name in clock controller backup1 accounting noded0 noded1 noded2 noded3 agent; do install -d -o slurm -g slurm -m 700 "/keys/$name"; done \
 && install -d -o slurm -g slurm -m 700 /site /key /state /database /run/postgresql && chmod 755 /var/lib/understudy

FROM users AS postgresql
RUN ls /usr/lib/postgresql/*/bin/postgres >/dev/null 2>&1 \
 || { apt-get update -qq && apt-get install -qq -y --no-install-recommends postgresql && rm -rf /var/lib/apt/lists/*; }
RUN ln -s /usr/lib/postgresql/*/bin /opt/postgresql
ENV PATH=/opt/postgresql:/usr/bin:/bin PGDATA=/database PGHOST=/run/postgresql PGDATABASE=postgres
# After the installation, which makes that folder, too.
RUN install -d -o slurm -g slurm -m 700 /run/postgresql
USER slurm
WORKDIR /tmp
# It listens at a socket alone, on a volume that accounting shares, and asks the kernel who is there.
CMD ["sh", "-c", "[ -e $PGDATA/PG_VERSION ] || initdb --auth=peer --encoding=UTF8 --no-locale && exec postgres -c listen_addresses= -c unix_socket_directories=$PGHOST"]

FROM users
COPY --from=build /opt/understudy /opt/understudy
COPY examples/compose.conf /etc/understudy/slurm.conf
ENV PATH=/opt/understudy/bin:/usr/local/bin:/usr/bin:/bin \
    SLURM_CONF=/var/lib/understudy/slurm.conf \
    UNDERSTUDY_REGISTRY=/var/lib/understudy/registry
USER slurm
WORKDIR /tmp
ENTRYPOINT ["understudy"]
CMD ["--help"]
