class AsyncStartedCall:
    """A call that runs while its caller does something else. Its result is kept for 15 minutes."""

    def __init__(self, transport: "_AsyncTransport", id: str) -> None:
        self._transport = transport
        self.id = id

    async def result(self) -> Any:
        """Waits for the data. Raises GatewayError if the call failed or was cancelled."""
        return await self._transport._run(self._transport._result_steps(self.id))

    async def cancel(self) -> None:
        """Cancels the call. A call that was not sent yet costs nothing."""
        await self._transport._run(self._transport._cancel_steps(self.id))


class _AsyncTransport(_Asyncio):
    async def call(
        self,
        api: str,
        endpoint: str,
        parameters: Optional[Dict[str, Any]] = None,
        headers: Optional[Dict[str, str]] = None,
        method: Optional[str] = None,
        once: Optional[bool] = None,
    ) -> Any:
        """Calls any endpoint, also one that this file does not know, and returns the data of its answer.

        method: POST sends the parameters as JSON; by default POST if this file knows that it must, or GET.
        once: the call changes something; it is not repeated if no answer says whether it happened;
            by default what this file knows of the endpoint.

        Raises GatewayError if the call failed, after the retries that its Retry-After allows.
        """
        answer = await self.answer(api, endpoint, parameters, headers, method, once)
        return answer.data

    async def answer(
        self,
        api: str,
        endpoint: str,
        parameters: Optional[Dict[str, Any]] = None,
        headers: Optional[Dict[str, str]] = None,
        method: Optional[str] = None,
        once: Optional[bool] = None,
    ) -> Answer:
        """As call, with the metadata of the answer: ids, cache, what is left of the limits."""
        request = self._call_request(api, endpoint, parameters, headers, method, once)
        return await self._run(self._answer_steps(request))

    async def start(
        self,
        api: str,
        endpoint: str,
        parameters: Optional[Dict[str, Any]] = None,
        headers: Optional[Dict[str, str]] = None,
        method: Optional[str] = None,
    ) -> AsyncStartedCall:
        """Starts a call that may wait longer than a connection should be held."""
        sent = {**(headers or {}), "Prefer": "respond-async"}
        request = self._call_request(api, endpoint, parameters, sent, method, True)
        return AsyncStartedCall(self, await self._run(self._start_steps(request)))

    async def batch(
        self, calls: Sequence[BatchCall], take: Literal["all", "fit"] = "all", headers: Optional[Dict[str, str]] = None
    ) -> BatchAnswer:
        """Makes up to 50 calls at once. Each ends by itself: look at the error of each result."""
        return await self._run(self._batch_steps(calls, take, headers))
