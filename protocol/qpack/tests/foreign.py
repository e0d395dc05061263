"""ls-qpack by orders: one line in, one line out; bytes are in hexadecimal."""

import sys

from pylsqpack import Decoder, Encoder, StreamBlocked


def fields(result):
    control, lines = result
    return f"{control.hex()}/" + "".join(f"{name.hex()}={value.hex()}," for name, value in lines)


for order in sys.stdin:
    word, first, second, *_ = order.rstrip("\n").split(" ") + ["", ""]
    answer = ""
    if word == "start":
        encoder, decoder = Encoder(), Decoder(int(first), int(second))
        answer = encoder.apply_settings(int(first), int(second)).hex()
    elif word == "encode":
        lines = [tuple(map(bytes.fromhex, line.split("="))) for line in second.split(",") if line]
        answer = "/".join(part.hex() for part in encoder.encode(int(first), lines))
    elif word == "feedback":
        encoder.feed_decoder(bytes.fromhex(first))
    elif word == "instructions":
        decoder.feed_encoder(bytes.fromhex(first))
    elif word == "decode":
        try:
            answer = fields(decoder.feed_header(int(first), bytes.fromhex(second)))
        except StreamBlocked:
            answer = "blocked"
    print(answer, flush=True)
