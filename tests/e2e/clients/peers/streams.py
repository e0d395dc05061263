"""A client of event streams as the benchmarks of language models have it (aiohttp, one task a stream), to compare `bolide load` with.

    streams.py URL CONCURRENT SECONDS
"""

import asyncio
import json
import sys
import time

import aiohttp


async def stream(session, url, end, times):
    """Reads streams one after the other; keeps when each event came."""
    while time.perf_counter() < end:
        begun = time.perf_counter()
        seen = []
        async with session.get(url) as response:
            response.raise_for_status()
            async for line in response.content:
                if line.startswith(b"data:"):
                    seen.append(time.perf_counter() - begun)
        times.append(seen)


async def main(url, concurrent, seconds):
    connector = aiohttp.TCPConnector(limit=0)
    times = []
    async with aiohttp.ClientSession(connector=connector) as session:
        end = time.perf_counter() + seconds
        await asyncio.gather(*(stream(session, url, end, times) for _ in range(concurrent)))
    first = sorted(seen[0] for seen in times)
    print(json.dumps({
        "streams": len(times),
        "events": sum(len(seen) for seen in times),
        "first_p50_ms": first[len(first) // 2] * 1e3,
    }))


asyncio.run(main(sys.argv[1], int(sys.argv[2]), float(sys.argv[3])))
