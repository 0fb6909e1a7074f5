package ledger

import (
	"math"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/negotiator/share"
)

// The fields of an entry in the log, as protobuf would lay them out.
const (
	eAt = iota + 1
	eEpoch
	eLead
	eHold
	eGrant
	ePair
	eCommand
	eAccount
	eEnded
)

// Encode adds the entry's form in the log to buf.
func (e *Entry) Encode(buf []byte) []byte {
	buf = number(buf, eAt, uint64(e.At))
	buf = number(buf, eEpoch, e.Epoch)
	buf = text(buf, eLead, e.Lead)
	var scratch []byte
	for i := range e.Holds {
		scratch = e.Holds[i].encode(scratch[:0])
		buf = piece(buf, eHold, scratch)
	}
	for i := range e.Grants {
		scratch = e.Grants[i].encode(scratch[:0])
		buf = piece(buf, eGrant, scratch)
	}
	for _, id := range e.Ended {
		buf = protowire.AppendVarint(protowire.AppendTag(buf, eEnded, protowire.VarintType), id)
	}
	for i := range e.Pairs {
		scratch = e.Pairs[i].encode(scratch[:0])
		buf = piece(buf, ePair, scratch)
	}
	for i := range e.Commands {
		scratch = e.Commands[i].encode(scratch[:0])
		buf = piece(buf, eCommand, scratch)
	}
	for i := range e.Accounts {
		scratch = encodeAccount(scratch[:0], &e.Accounts[i])
		buf = piece(buf, eAccount, scratch)
	}
	return buf
}

func encodeAccount(b []byte, a *share.Account) []byte {
	b = submitter(b, 1, a.Submitter)
	for i, v := range [...]float64{a.Real, a.Use, a.Used, a.Factor} {
		b = real(b, protowire.Number(3+i), v)
	}
	return number(b, 7, uint64(a.At))
}

func (h *Hold) encode(b []byte) []byte {
	b = submitter(b, 1, h.Submitter)
	return real(b, 3, h.Cores)
}

func (g *Grant) encode(b []byte) []byte {
	b = number(b, 1, g.ID)
	b = number(b, 2, uint64(g.Units))
	b = text(b, 3, g.Schedd)
	b = number(b, 4, g.Request)
	b = submitter(b, 5, g.Submitter)
	b = number(b, 7, uint64(g.Band))
	b = text(b, 8, g.Machine)
	b = number(b, 9, uint64(g.Started))
	b = vector(b, 10, g.Resources)
	b = truth(b, 15, g.Stream)
	b = truth(b, 16, g.Waiting)
	b = number(b, 17, uint64(g.Unit))
	for _, u := range g.Limits {
		b = piece(b, 18, number(text(nil, 1, u.Limit), 2, uint64(u.Count)))
	}
	for _, v := range g.Victims {
		b = protowire.AppendVarint(protowire.AppendTag(b, 19, protowire.VarintType), v)
	}
	b = number(b, 20, uint64(g.ClaimBy))
	for _, job := range g.Evicted {
		b = protowire.AppendString(protowire.AppendTag(b, 21, protowire.BytesType), job)
	}
	return b
}

func (p *Pair) encode(b []byte) []byte {
	b = text(b, 1, p.Task)
	b = text(b, 2, p.Machine)
	b = number(b, 3, uint64(nanos(p.Until)))
	return text(b, 4, p.Reason)
}

func (c *Command) encode(b []byte) []byte {
	b = text(b, 1, c.Who)
	b = truth(b, 2, c.Trusted)
	b = text(b, 3, string(c.Verb))
	b = text(b, 4, string(c.Kind))
	b = text(b, 5, c.Name)
	b = text(b, 6, string(c.Object))
	b = truth(b, 7, c.Whole)
	b = truth(b, 8, c.Fresh)
	b = truth(b, 9, c.Unsure)
	return text(b, 10, string(c.Basis))
}

// submitter takes two numbers of fields.
func submitter(b []byte, field protowire.Number, s share.Submitter) []byte {
	return text(text(b, field, s.Owner), field+1, s.Group)
}

// vector takes five numbers of fields.
func vector(b []byte, field protowire.Number, r roost.Resources) []byte {
	for i, v := range [...]int64{int64(r.CPU), int64(r.Memory), int64(r.Disk), int64(r.GPUs), int64(r.GPUMemory)} {
		b = number(b, field+protowire.Number(i), uint64(v))
	}
	return b
}

func number(b []byte, field protowire.Number, v uint64) []byte {
	if v == 0 {
		return b
	}
	return protowire.AppendVarint(protowire.AppendTag(b, field, protowire.VarintType), v)
}

func real(b []byte, field protowire.Number, v float64) []byte {
	if v == 0 {
		return b
	}
	return protowire.AppendFixed64(protowire.AppendTag(b, field, protowire.Fixed64Type), math.Float64bits(v))
}

func truth(b []byte, field protowire.Number, v bool) []byte {
	if !v {
		return b
	}
	return number(b, field, 1)
}

func text(b []byte, field protowire.Number, v string) []byte {
	if v == "" {
		return b
	}
	return protowire.AppendString(protowire.AppendTag(b, field, protowire.BytesType), v)
}

func piece(b []byte, field protowire.Number, body []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(b, field, protowire.BytesType), body)
}
