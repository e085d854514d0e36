S = TypeVar("S", bound="_Asyncio")


class _Asyncio(_Calls):
    """Runs the steps of a call for asyncio: requests in threads, at most 32 at once, and no thread for a wait."""

    _threads: Optional[concurrent.futures.ThreadPoolExecutor] = None
    #: The process of the threads. A process that is forked from it has none of them.
    _process: Optional[int] = None

    async def __aenter__(self: S) -> S:
        return self

    async def __aexit__(self, *_: Any) -> None:
        self.close()

    def close(self) -> None:
        """Ends the threads, when they have ended their requests."""
        if self._threads is not None:
            self._threads.shutdown(wait=False)

    async def _run(self, steps: "_Steps[T]") -> T:
        loop = asyncio.get_running_loop()
        if self._process != os.getpid():
            self._process = os.getpid()
            self._threads = concurrent.futures.ThreadPoolExecutor(32, "agent-api-gateway")
        try:
            step = next(steps)
            while True:
                if isinstance(step, float):
                    await asyncio.sleep(step)
                    step = steps.send(None)
                    continue
                connection = _Connection()
                try:
                    received = await loop.run_in_executor(self._threads, _send, step, self._timeout, connection)
                except asyncio.CancelledError:
                    connection.end("the call was cancelled")
                    raise
                except GatewayError as error:
                    step = steps.throw(error)
                    continue
                step = steps.send(received)
        except StopIteration as end:
            value: T = end.value
            return value
