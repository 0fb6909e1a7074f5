package ledger

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/negotiator/fairshare"
)

// stateVersion is the version of the format that Save writes. It increases when older
// versions must not read the new format. Fields that they may skip need no new version.
const stateVersion = 1

// The fields of the saved state.
const (
	sVersion = iota + 1
	sNow
	sEpoch
	sLeader
	sLast
	sHalfLife
	sAccount
	sPendingGrant
	sAvoidPair
	sObject
	sPolicy
	sEviction
	sElsewhereWeight
)

// Save returns the encoded ledger. Equal ledgers give the same bytes, and Load restores
// the same ledger from them, bit for bit.
func (l *Ledger) Save() []byte {
	b := encodeNumber(nil, sVersion, stateVersion)
	b = encodeNumber(b, sNow, uint64(l.now))
	b = encodeNumber(b, sEpoch, l.epoch)
	b = encodeText(b, sLeader, l.leader)
	b = encodeNumber(b, sLast, l.lastGrant)
	b = encodeNumber(b, sHalfLife, uint64(l.accountant.HalfLife()))
	b = encodeNumber(b, sPolicy, l.policyVersion)
	b = encodeFloat(b, sElsewhereWeight, l.accountant.ElsewhereWeight())
	var scratch []byte
	for _, a := range l.accountant.Accounts() {
		scratch = encodeAccount(scratch[:0], &a)
		b = encodePiece(b, sAccount, scratch)
	}
	for f := range l.PendingGrants() {
		scratch = encodeNumber(encodeNumber(scratch[:0], 1, uint64(f.At)), 2, f.Epoch)
		b = encodePiece(b, sPendingGrant, encodePiece(scratch, 3, f.Grant.encode(nil)))
	}
	for _, e := range l.evictions {
		b = encodePiece(b, sEviction, e.encode(scratch[:0]))
	}
	for _, p := range l.AvoidPairs() {
		b = encodePiece(b, sAvoidPair, p.encode(scratch[:0]))
	}
	for _, kind := range slices.Sorted(maps.Keys(l.objects)) {
		for _, name := range slices.Sorted(maps.Keys(l.objects[kind])) {
			o := l.objects[kind][name]
			scratch = encodeText(encodeText(encodeText(scratch[:0], 1, string(kind)), 2, name), 3, string(o.text))
			scratch = encodeNumber(encodeText(scratch, 4, o.setBy), 5, uint64(o.setAt))
			if o.made != o.setAt {
				scratch = encodeNumber(scratch, 6, uint64(o.made))
			}
			b = encodePiece(b, sObject, scratch)
		}
	}
	return b
}

// Hash returns a hash that is the same for equal ledgers.
func (l *Ledger) Hash() [sha256.Size]byte { return sha256.Sum256(l.Save()) }

// Load decodes what Save returned. It retains objects of unknown kinds unchanged.
func Load(buf []byte) (*Ledger, error) {
	l, version := New(), uint64(0)
	var accounts []fairshare.SubmitterAccount
	halfLife, elsewhereWeight := int64(0), 0.0
	err := eachField(buf, func(f protowire.Number, v uint64, b []byte) error {
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
			l.lastGrant = v
		case sHalfLife:
			halfLife = int64(v)
		case sElsewhereWeight:
			elsewhereWeight = math.Float64frombits(v)
		case sPolicy:
			l.policyVersion = v
		case sAccount:
			var err error
			accounts, err = appendDecoded(accounts, b, decodeAccount)
			return err
		case sPendingGrant:
			return l.loadPendingGrant(b)
		case sEviction:
			var err error
			l.evictions, err = appendDecoded(l.evictions, b, (*TaskEviction).decode)
			return err
		case sAvoidPair:
			var p AvoidPair
			if err := p.decode(b); err != nil {
				return err
			}
			if unixNanos(p.Until) > 0 {
				l.avoidPairs[p.key()] = p
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
	l.accountant = fairshare.NewAccountant(time.Duration(halfLife))
	l.accountant.SetElsewhereWeight(l.clockTime(), elsewhereWeight)
	for _, a := range accounts {
		if err := l.accountant.PutAccount(a); err != nil {
			return nil, fmt.Errorf("kept ledger: %w", err)
		}
	}
	if len(l.avoidPairs) > 0 {
		l.avoidPairsDue = unixNanos(l.firstExpiring().Until)
	}
	return l, nil
}

func (l *Ledger) loadPendingGrant(buf []byte) error {
	var pending PendingGrant
	err := eachField(buf, func(f protowire.Number, v uint64, b []byte) error {
		switch f {
		case 1:
			pending.At = int64(v)
		case 2:
			pending.Epoch = v
		case 3:
			return pending.Grant.decode(b)
		}
		return nil
	})
	if list := l.grantTable().pendingListOf(&pending.Grant); err == nil {
		*list = append(*list, pending)
	}
	return err
}

func (l *Ledger) loadObject(buf []byte) error {
	var kind ObjectKind
	var name string
	o := &storedObject{}
	err := eachField(buf, func(f protowire.Number, v uint64, b []byte) error {
		switch f {
		case 1:
			kind = ObjectKind(b)
		case 2:
			name = string(b)
		case 3:
			o.text = json.RawMessage(append([]byte(nil), b...))
		case 4:
			o.setBy = string(b)
		case 5:
			o.setAt = int64(v)
		case 6:
			o.made = int64(v)
		}
		return nil
	})
	if err != nil {
		return err
	}
	if o.made == 0 {
		o.made = o.setAt
	}
	if read := objectReaders()[kind]; read != nil {
		if t, err := read(o.text); err == nil {
			o.value = t
		}
	}
	if l.objects[kind] == nil {
		l.objects[kind] = map[string]*storedObject{}
	}
	l.objects[kind][name] = o
	return nil
}
