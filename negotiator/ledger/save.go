package ledger

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/negotiator/share"
)

// stateVersion is that of the format that Save writes. It rises when a version must not read what a newer one wrote; what it may skip needs no new one.
const stateVersion = 1

// The fields of the state as it is kept.
const (
	sVersion = iota + 1
	sNow
	sEpoch
	sLeader
	sLast
	sHalfLife
	sAccount
	sFlight
	sPair
	sObject
	sPolicy
	sEviction
)

// Save returns all of the ledger, to be kept. Ledgers that are the same give the same bytes, and Load makes the same ledger of them, bit for bit.
func (l *Ledger) Save() []byte {
	b := number(nil, sVersion, stateVersion)
	b = number(b, sNow, uint64(l.now))
	b = number(b, sEpoch, l.epoch)
	b = text(b, sLeader, l.leader)
	b = number(b, sLast, l.last)
	b = number(b, sHalfLife, uint64(l.book.HalfLife()))
	b = number(b, sPolicy, l.policy)
	var scratch []byte
	for _, a := range l.book.Accounts() {
		scratch = encodeAccount(scratch[:0], &a)
		b = piece(b, sAccount, scratch)
	}
	for f := range l.Flights() {
		scratch = number(number(scratch[:0], 1, uint64(f.At)), 2, f.Epoch)
		b = piece(b, sFlight, piece(scratch, 3, f.Grant.encode(nil)))
	}
	for _, e := range l.evicted {
		b = piece(b, sEviction, e.encode(scratch[:0]))
	}
	for _, p := range l.Pairs() {
		b = piece(b, sPair, p.encode(scratch[:0]))
	}
	for _, kind := range slices.Sorted(maps.Keys(l.objects)) {
		for _, name := range slices.Sorted(maps.Keys(l.objects[kind])) {
			o := l.objects[kind][name]
			scratch = text(text(text(scratch[:0], 1, string(kind)), 2, name), 3, string(o.text))
			scratch = number(text(scratch, 4, o.by), 5, uint64(o.at))
			if o.made != o.at {
				scratch = number(scratch, 6, uint64(o.made))
			}
			b = piece(b, sObject, scratch)
		}
	}
	return b
}

// Hash tells ledgers apart: it is the same for those that are the same.
func (l *Ledger) Hash() [sha256.Size]byte { return sha256.Sum256(l.Save()) }

// Load makes a ledger of what Save returned. Objects of kinds that are not known are kept as they are.
func Load(buf []byte) (*Ledger, error) {
	l, version := New(), uint64(0)
	var accounts []share.Account
	halfLife := int64(0)
	err := fields(buf, func(f protowire.Number, v uint64, b []byte) error {
		switch f {
		case sVersion:
			version = v
		case sNow:
			l.now = int64(v)
		case sEpoch:
			l.epoch = v
		case sLeader:
			l.leader = string(b)
		case sLast:
			l.last = v
		case sHalfLife:
			halfLife = int64(v)
		case sPolicy:
			l.policy = v
		case sAccount:
			var err error
			accounts, err = grow(accounts, b, decodeAccount)
			return err
		case sFlight:
			return l.loadFlight(b)
		case sEviction:
			var err error
			l.evicted, err = grow(l.evicted, b, (*Eviction).decode)
			return err
		case sPair:
			var p Pair
			if err := p.decode(b); err != nil {
				return err
			}
			if nanos(p.Until) > 0 {
				l.pairs[p.key()] = p
			}
		case sObject:
			return l.loadObject(b)
		}
		return nil
	})
	if err == nil && version != stateVersion {
		err = fmt.Errorf("%w: version %d of its format is not one that this Roost knows", roost.Invalid, version)
	}
	if err != nil {
		return nil, fmt.Errorf("kept ledger: %w", err)
	}
	l.book = share.NewBook(time.Duration(halfLife))
	for _, a := range accounts {
		if err := l.book.Put(a); err != nil {
			return nil, fmt.Errorf("kept ledger: %w", err)
		}
	}
	if len(l.pairs) > 0 {
		l.pairsDue = nanos(l.firstOver().Until)
	}
	return l, nil
}

func (l *Ledger) loadFlight(buf []byte) error {
	var flight Flight
	err := fields(buf, func(f protowire.Number, v uint64, b []byte) error {
		switch f {
		case 1:
			flight.At = int64(v)
		case 2:
			flight.Epoch = v
		case 3:
			return flight.Grant.decode(b)
		}
		return nil
	})
	if list := l.listOf(&flight.Grant); err == nil {
		*list = append(*list, flight)
	}
	return err
}

func (l *Ledger) loadObject(buf []byte) error {
	var kind Kind
	var name string
	o := &object{}
	err := fields(buf, func(f protowire.Number, v uint64, b []byte) error {
		switch f {
		case 1:
			kind = Kind(b)
		case 2:
			name = string(b)
		case 3:
			o.text = json.RawMessage(append([]byte(nil), b...))
		case 4:
			o.by = string(b)
		case 5:
			o.at = int64(v)
		case 6:
			o.made = int64(v)
		}
		return nil
	})
	if err != nil {
		return err
	}
	if o.made == 0 {
		o.made = o.at
	}
	if read := kinds()[kind]; read != nil {
		if t, err := read(o.text); err == nil {
			o.thing = t
		}
	}
	if l.objects[kind] == nil {
		l.objects[kind] = map[string]*object{}
	}
	l.objects[kind][name] = o
	return nil
}
