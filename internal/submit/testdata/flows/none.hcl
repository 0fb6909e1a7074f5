job "x" { command = ["true"] }
