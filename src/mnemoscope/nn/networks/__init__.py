"""Networks, one file each, by their registry names; a file is imported when its network is asked for."""

__all__ = ["TABLE"]

TABLE = {
    "2rnn": "second_order:SecondOrderRNN",
    "birnn": "birnn:BIRNN",
    "cp": "cp:CP",
    "cpbirnn": "cprnn:CPBIRNN",
    "cprnn": "cprnn:CPRNN",
    "eurnn": "eurnn:EURNN",
    "exprnn": "exprnn:ExpRNN",
    "full-urnn": "full_urnn:FullURNN",
    "goru": "goru:GORU",
    "gru": "gated:GRU",
    "h-detach-lstm": "h_detach:HDetachLSTM",
    "henaff": "henaff:Henaff",
    "irnn": "elman:IRNN",
    "linear-rnn": "elman:LinearRNN",
    "lstm": "gated:LSTM",
    "mirnn": "mirnn:MIRNN",
    "nnrnn": "nnrnn:NNRNN",
    "ornn": "ornn:ORNN",
    "orth-rnn": "elman:OrthRNN",
    "rac": "rac:RAC",
    "rnn": "elman:RNN",
    "scornn": "scornn:SCORNN",
    "scurnn": "scurnn:SCURNN",
    "soft-orth": "soft_orth:SoftOrth",
    "tt": "tt:TT",
    "urnn": "urnn:URNN",
}
"""File and class of every network of the registry."""
