S = TypeVar("S", bound="_AsyncTransport")


class AsyncStartedCall:
    """A call that goes on without its caller. Its result is kept for 15 minutes."""

    def __init__(self, transport: "_AsyncTransport", id: str) -> None:
        self._transport = transport
        self.id = id

    async def result(self) -> Any:
        """Waits for the data. Raises GatewayError when the call failed or was cancelled."""
        return await self._transport._run(self._transport._result_steps(self.id))

    async def cancel(self) -> None:
        """Cancels the call. What was not sent yet costs nothing."""
        await self._transport._run(self._transport._cancel_steps(self.id))


class _AsyncTransport(_Calls):
    """The same for asyncio. Requests run in threads, at most 32 at once; waits for a retry take none."""

    def __init__(
        self,
        key: str,
        base_url: str,
        retries_max: int,
        retry_wait_max: float,
        timeout: float,
        on_retry: Optional[Callable[[GatewayError, float, int], None]],
        on_answer: Optional[Callable[[Meta], None]],
    ) -> None:
        super().__init__(key, base_url, retries_max, retry_wait_max, timeout, on_retry, on_answer)
        self._threads = concurrent.futures.ThreadPoolExecutor(32, "agent-api-gateway")

    async def __aenter__(self: S) -> S:
        return self

    async def __aexit__(self, *_: Any) -> None:
        self.close()

    def close(self) -> None:
        """Ends the threads, when they have ended their requests."""
        self._threads.shutdown(wait=False)

    async def call(
        self,
        api: str,
        endpoint: str,
        parameters: Optional[Dict[str, Any]] = None,
        headers: Optional[Dict[str, str]] = None,
        method: str = "GET",
        once: bool = False,
    ) -> Any:
        """As the method of Gateway."""
        return (await self.answer(api, endpoint, parameters, headers, method, once)).data

    async def answer(
        self,
        api: str,
        endpoint: str,
        parameters: Optional[Dict[str, Any]] = None,
        headers: Optional[Dict[str, str]] = None,
        method: str = "GET",
        once: bool = False,
    ) -> Answer:
        """As the method of Gateway."""
        request = self._call_request(api, endpoint, parameters, headers, method, once)
        return await self._run(self._answer_steps(request))

    async def start(
        self,
        api: str,
        endpoint: str,
        parameters: Optional[Dict[str, Any]] = None,
        headers: Optional[Dict[str, str]] = None,
        method: str = "GET",
    ) -> AsyncStartedCall:
        """As the method of Gateway."""
        sent = {**(headers or {}), "Prefer": "respond-async"}
        request = self._call_request(api, endpoint, parameters, sent, method, True)
        return AsyncStartedCall(self, await self._run(self._start_steps(request)))

    async def batch(
        self, calls: Sequence[BatchCall], take: Literal["all", "fit"] = "all", headers: Optional[Dict[str, str]] = None
    ) -> BatchAnswer:
        """As the method of Gateway."""
        return await self._run(self._batch_steps(calls, take, headers))

    async def _run(self, steps: "_Steps[T]") -> T:
        loop = asyncio.get_running_loop()
        try:
            step = next(steps)
            while True:
                if isinstance(step, float):
                    await asyncio.sleep(step)
                    step = steps.send(None)
                    continue
                try:
                    received = await loop.run_in_executor(self._threads, _send, step, self._timeout)
                except GatewayError as error:
                    step = steps.throw(error)
                    continue
                step = steps.send(received)
        except StopIteration as end:
            value: T = end.value
            return value
