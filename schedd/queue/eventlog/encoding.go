package eventlog

import "google.golang.org/protobuf/encoding/protowire"

// encodedField is one field of a message on disk: a number or a piece of bytes.
type encodedField struct {
	number protowire.Number
	value  uint64
	bytes  []byte
}

// eachField calls f with each field of a message.
func eachField(b []byte, f func(encodedField) error) error {
	for len(b) > 0 {
		num, kind, n := protowire.ConsumeTag(b)
		if n < 0 {
			return protowire.ParseError(n)
		}
		b = b[n:]
		got := encodedField{number: num}
		switch kind {
		case protowire.VarintType:
			got.value, n = protowire.ConsumeVarint(b)
		case protowire.BytesType:
			got.bytes, n = protowire.ConsumeBytes(b)
		default:
			n = protowire.ConsumeFieldValue(num, kind, b)
		}
		if n < 0 {
			return protowire.ParseError(n)
		}
		b = b[n:]
		if err := f(got); err != nil {
			return err
		}
	}
	return nil
}

func appendNumber(b []byte, field protowire.Number, v uint64) []byte {
	if v == 0 {
		return b
	}
	return protowire.AppendVarint(protowire.AppendTag(b, field, protowire.VarintType), v)
}

func appendBool(b []byte, field protowire.Number, v bool) []byte {
	if !v {
		return b
	}
	return appendNumber(b, field, 1)
}

func appendText(b []byte, field protowire.Number, v string) []byte {
	if v == "" {
		return b
	}
	return protowire.AppendString(protowire.AppendTag(b, field, protowire.BytesType), v)
}

func appendMessage(b []byte, field protowire.Number, body func([]byte) []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(b, field, protowire.BytesType), body(nil))
}

// runEnd returns the last index of the run of equal things that begins at first.
func runEnd[T comparable](list []T, first int) int {
	last := first
	for last+1 < len(list) && list[last+1] == list[first] {
		last++
	}
	return last
}
