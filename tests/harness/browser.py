"""A real browser: Debian's Chromium without a window, driven by selenium.

Where it is missing it is installed if that is possible, as for continuous integration.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import time
from typing import TYPE_CHECKING, Any

import pytest
from selenium import webdriver
from selenium.webdriver.chrome.service import Service

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

PACKAGES = ("chromium", "chromium-driver")
INSTALL_S = 600
OPEN_S = 120  # a loaded machine takes ten times as long as an idle one


def find() -> None:
    """See that there is a browser; skip, with the reason, where there cannot be one."""
    if shutil.which("chromium") and shutil.which("chromedriver"):
        return
    if os.geteuid() != 0 or not shutil.which("apt-get"):
        pytest.skip(f"no {' and '.join(PACKAGES)} here, and only root can install them with apt")
    quiet = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    install = ["apt-get", "install", "-y", "-q", "--no-install-recommends", *PACKAGES]
    try:
        for command in (["apt-get", "update", "-q"], [*install, "fonts-dejavu-core"]):
            subprocess.run(command, env=quiet, check=True, capture_output=True, timeout=INSTALL_S)
    except (subprocess.CalledProcessError, subprocess.TimeoutExpired) as error:
        pytest.skip(f"{' and '.join(PACKAGES)} cannot be installed: {error}")


class Browser:
    """One window; `run` executes a script in the page."""

    def __init__(self, driver: webdriver.Chrome) -> None:
        self.driver = driver

    def look(self, width: int, height: int = 900, scheme: str = "light") -> None:
        """As on a screen of that size, of somebody who likes that scheme."""
        self.driver.execute_cdp_cmd(
            "Emulation.setDeviceMetricsOverride",
            {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 500},
        )
        self.driver.execute_cdp_cmd(
            "Emulation.setEmulatedMedia",
            {"features": [{"name": "prefers-color-scheme", "value": scheme}]},
        )

    def open(self, path: Path) -> None:
        """Show the page, and wait until it is drawn."""
        self.driver.get(path.resolve().as_uri())
        self.wait(
            "const at = document.documentElement.dataset;"
            "const box = document.getElementById('explorer');"
            "return !box || box.dataset.error || at.ready && ![...document.querySelectorAll("
            "'.gantt canvas')].some(each => !each.dataset.drawn)"
        )

    def run(self, script: str, *given: object) -> Any:
        return self.driver.execute_script(script, *given)

    def wait(self, script: str, *given: object) -> None:
        """Until the script returns something that is true."""
        until = time.monotonic() + OPEN_S
        while not self.run(script, *given):
            assert time.monotonic() < until, f"never true in the page: {script}"
            time.sleep(0.05)

    def complaints(self) -> list[str]:
        """What the console has since it was asked last, but for advice on how tests look."""
        said = [entry["message"] for entry in self.driver.get_log("browser")]
        return [line for line in said if "willReadFrequently" not in line]


@contextlib.contextmanager
def browser() -> Iterator[Browser]:
    """A window until the end of the block."""
    find()
    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium") or ""
    for word in (
        "--headless=new",
        "--no-sandbox",  # it does not start as root with one
        "--disable-dev-shm-usage",
        "--disable-gpu",
        "--hide-scrollbars",
        "--disable-background-networking",
        "--window-size=1200,900",
    ):
        options.add_argument(word)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options=options, service=Service(shutil.which("chromedriver")))
    try:
        driver.set_page_load_timeout(OPEN_S)
        driver.set_script_timeout(OPEN_S)
        yield Browser(driver)
    finally:
        driver.quit()
