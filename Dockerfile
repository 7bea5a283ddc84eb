# One image for all daemons and commands. BASE: any with Python >= 3.11 and its venv module; `tests/compose/make_base_image` makes one from Debian's
# packages where none can be pulled. The wheels in build/wheels come from the locks: `make compose-image`. pyarrow is half of them, and only replays write
# their results with it, which are not for containers.
ARG BASE=python:3.11-slim

FROM ${BASE} AS build
COPY build/wheels /wheels
RUN python3 -m venv /opt/understudy \
 && /opt/understudy/bin/python -m pip install --quiet --disable-pip-version-check --no-cache-dir --no-index --find-links /wheels understudy \
 && /opt/understudy/bin/python -m understudy.commands.starters \
 && /opt/understudy/bin/python -m pip uninstall --quiet --yes pyarrow pip setuptools \
 && find /opt/understudy -name tests -type d -prune -exec rm -rf {} +

FROM ${BASE}
COPY --from=build /opt/understudy /opt/understudy
COPY examples/compose.conf /etc/understudy/slurm.conf
# slurm runs the daemons and is the cluster's administrator; `user` is anybody.
RUN groupadd --gid 64030 slurm && useradd --uid 64030 --gid slurm --home-dir /var/lib/understudy --create-home slurm \
 && useradd --uid 1000 --create-home --shell /bin/bash user \
 && mkdir /site && chown slurm:slurm /site && chmod 700 /site && chmod 755 /var/lib/understudy
ENV PATH=/opt/understudy/bin:/usr/local/bin:/usr/bin:/bin \
    SLURM_CONF=/var/lib/understudy/slurm.conf \
    UNDERSTUDY_REGISTRY=/var/lib/understudy/registry
USER slurm
WORKDIR /tmp
ENTRYPOINT ["understudy"]
CMD ["--help"]
