package ledger

import (
	"math"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/negotiator/fairshare"
)

// The fields of an entry in the log, in the protobuf wire format.
const (
	eAt = iota + 1
	eEpoch
	eLead
	eUsage
	eGrant
	eAvoidPair
	eCommand
	eAccount
	eResolved
)

// Encode appends the encoded entry to buf.
func (e *LogEntry) Encode(buf []byte) []byte {
	buf = encodeNumber(buf, eAt, uint64(e.At))
	buf = encodeNumber(buf, eEpoch, e.Epoch)
	buf = encodeText(buf, eLead, e.Lead)
	var scratch []byte
	for i := range e.Holds {
		scratch = e.Holds[i].encode(scratch[:0])
		buf = encodePiece(buf, eUsage, scratch)
	}
	for i := range e.Grants {
		scratch = e.Grants[i].encode(scratch[:0])
		buf = encodePiece(buf, eGrant, scratch)
	}
	for _, id := range e.Ended {
		buf = protowire.AppendVarint(protowire.AppendTag(buf, eResolved, protowire.VarintType), id)
	}
	for i := range e.Pairs {
		scratch = e.Pairs[i].encode(scratch[:0])
		buf = encodePiece(buf, eAvoidPair, scratch)
	}
	for i := range e.Commands {
		scratch = e.Commands[i].encode(scratch[:0])
		buf = encodePiece(buf, eCommand, scratch)
	}
	for i := range e.Accounts {
		scratch = encodeAccount(scratch[:0], &e.Accounts[i])
		buf = encodePiece(buf, eAccount, scratch)
	}
	return buf
}

func encodeAccount(b []byte, a *fairshare.SubmitterAccount) []byte {
	b = encodeSubmitter(b, 1, a.Submitter)
	for i, v := range [...]float64{a.Real, a.Use, a.Used, a.Factor} {
		b = encodeFloat(b, protowire.Number(3+i), v)
	}
	b = encodeNumber(b, 7, uint64(a.At))
	return encodeFloat(encodeFloat(b, 8, a.UseElsewhere), 9, a.UsedElsewhere)
}

func (h *UsageUpdate) encode(b []byte) []byte {
	b = encodeSubmitter(b, 1, h.Submitter)
	return encodeFloat(encodeFloat(b, 3, h.Cores), 4, h.Elsewhere)
}

func (g *RecordedGrant) encode(b []byte) []byte {
	b = encodeNumber(b, 1, g.ID)
	b = encodeNumber(b, 2, uint64(g.Units))
	b = encodeText(b, 3, g.Schedd)
	b = encodeNumber(b, 4, g.Request)
	b = encodeSubmitter(b, 5, g.Submitter)
	b = encodeNumber(b, 7, uint64(g.Band))
	b = encodeText(b, 8, g.Machine)
	b = encodeNumber(b, 9, uint64(g.Started))
	b = encodeResources(b, 10, g.Resources)
	b = encodeBool(b, 15, g.Stream)
	b = encodeBool(b, 16, g.Waiting)
	b = encodeNumber(b, 17, uint64(g.Unit))
	for _, u := range g.Limits {
		b = encodePiece(b, 18, encodeNumber(encodeText(nil, 1, u.Limit), 2, uint64(u.Count)))
	}
	for _, v := range g.Victims {
		b = protowire.AppendVarint(protowire.AppendTag(b, 19, protowire.VarintType), v)
	}
	b = encodeNumber(b, 20, uint64(g.ClaimBy))
	for _, job := range g.Evicted {
		b = protowire.AppendString(protowire.AppendTag(b, 21, protowire.BytesType), job)
	}
	return b
}

func (p *AvoidPair) encode(b []byte) []byte {
	b = encodeText(b, 1, p.Task)
	b = encodeText(b, 2, p.Machine)
	b = encodeNumber(b, 3, uint64(unixNanos(p.Until)))
	return encodeText(b, 4, p.Reason)
}

func (c *AdminCommand) encode(b []byte) []byte {
	b = encodeText(b, 1, c.Who)
	b = encodeBool(b, 2, c.Trusted)
	b = encodeText(b, 3, string(c.Verb))
	b = encodeText(b, 4, string(c.Kind))
	b = encodeText(b, 5, c.Name)
	b = encodeText(b, 6, string(c.Object))
	b = encodeBool(b, 7, c.Whole)
	b = encodeBool(b, 8, c.Fresh)
	b = encodeBool(b, 9, c.Unsure)
	return encodeText(b, 10, string(c.Basis))
}

// encodeSubmitter writes a submitter in two consecutive fields.
func encodeSubmitter(b []byte, field protowire.Number, s fairshare.Submitter) []byte {
	return encodeText(encodeText(b, field, s.Owner), field+1, s.Group)
}

// encodeResources writes resources in five consecutive fields.
func encodeResources(b []byte, field protowire.Number, r roost.Resources) []byte {
	for i, v := range [...]int64{int64(r.CPU), int64(r.Memory), int64(r.Disk), int64(r.GPUs), int64(r.GPUMemory)} {
		b = encodeNumber(b, field+protowire.Number(i), uint64(v))
	}
	return b
}

func encodeNumber(b []byte, field protowire.Number, v uint64) []byte {
	if v == 0 {
		return b
	}
	return protowire.AppendVarint(protowire.AppendTag(b, field, protowire.VarintType), v)
}

func encodeFloat(b []byte, field protowire.Number, v float64) []byte {
	if v == 0 {
		return b
	}
	return protowire.AppendFixed64(protowire.AppendTag(b, field, protowire.Fixed64Type), math.Float64bits(v))
}

func encodeBool(b []byte, field protowire.Number, v bool) []byte {
	if !v {
		return b
	}
	return encodeNumber(b, field, 1)
}

func encodeText(b []byte, field protowire.Number, v string) []byte {
	if v == "" {
		return b
	}
	return protowire.AppendString(protowire.AppendTag(b, field, protowire.BytesType), v)
}

func encodePiece(b []byte, field protowire.Number, body []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(b, field, protowire.BytesType), body)
}
