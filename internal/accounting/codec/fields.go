package codec

import (
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/roost-batch/roost"
)

// encodedField is one field of an entry: a number or a piece of bytes.
type encodedField struct {
	number protowire.Number
	value  uint64
	bytes  []byte
}

// eachField calls f with each field of a message.
func eachField(b []byte, f func(encodedField) error) error {
	for len(b) > 0 {
		number, kind, n := protowire.ConsumeTag(b)
		if n < 0 {
			return protowire.ParseError(n)
		}
		b = b[n:]
		field := encodedField{number: number}
		switch kind {
		case protowire.VarintType:
			field.value, n = protowire.ConsumeVarint(b)
		case protowire.BytesType:
			field.bytes, n = protowire.ConsumeBytes(b)
		default:
			n = protowire.ConsumeFieldValue(number, kind, b)
		}
		if n < 0 {
			return protowire.ParseError(n)
		}
		b = b[n:]
		if err := f(field); err != nil {
			return err
		}
	}
	return nil
}

func appendNumber[N ~int | ~int32 | ~int64 | ~uint8 | ~uint32 | ~uint64](b []byte, field protowire.Number, v N) []byte {
	if v == 0 {
		return b
	}
	return protowire.AppendVarint(protowire.AppendTag(b, field, protowire.VarintType), uint64(v))
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

// appendResources adds amounts of resources; nothing for none.
func appendResources(b []byte, field protowire.Number, r *roost.Resources) []byte {
	if *r == (roost.Resources{}) {
		return b
	}
	return protowire.AppendBytes(protowire.AppendTag(b, field, protowire.BytesType), resourceFields(nil, r))
}

func resourceFields(b []byte, r *roost.Resources) []byte {
	b = appendNumber(appendNumber(b, 1, r.CPU), 2, r.Memory)
	b = appendNumber(appendNumber(b, 3, r.Disk), 4, r.GPUs)
	b = appendNumber(b, 5, r.GPUMemory)
	return appendNumber(appendNumber(b, 6, r.IO.Disk), 7, r.IO.Network)
}

func decodeResources(b []byte, r *roost.Resources) error {
	return eachField(b, func(f encodedField) error {
		switch f.number {
		case 1:
			r.CPU = roost.MilliCPU(f.value)
		case 2:
			r.Memory = roost.Bytes(f.value)
		case 3:
			r.Disk = roost.Bytes(f.value)
		case 4:
			r.GPUs = int(f.value)
		case 5:
			r.GPUMemory = roost.Bytes(f.value)
		case 6:
			r.IO.Disk = roost.ByteRate(f.value)
		case 7:
			r.IO.Network = roost.ByteRate(f.value)
		}
		return nil
	})
}
