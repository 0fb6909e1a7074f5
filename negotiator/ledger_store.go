package negotiator

import (
	"io"
	"sync"

	"github.com/roost-batch/roost/negotiator/ledger"
)

// ledgerStore is the ledger behind a lock: the replicated log writes it, and the loop
// reads it. It is a [replica.StateMachine].
type ledgerStore struct {
	mu        sync.Mutex
	ledger    *ledger.Ledger
	index     uint64             // of the last entry in it; 0 if that is not known
	onApplied func(epoch uint64) // called after each entry and each restore
}

func newLedgerStore(applied func(epoch uint64)) *ledgerStore {
	return &ledgerStore{ledger: ledger.New(), onApplied: applied}
}

// view lets f read the ledger. What f keeps it copies.
func (r *ledgerStore) view(f func(*ledger.Ledger)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	f(r.ledger)
}

// currentEpoch is the one in force, as far as this replica has heard.
func (r *ledgerStore) currentEpoch() (epoch uint64) {
	r.view(func(l *ledger.Ledger) { epoch, _ = l.Epoch() })
	return epoch
}

// Apply takes in one entry of the log, and returns a ledger.EntryResult.
func (r *ledgerStore) Apply(index uint64, text []byte) any {
	e, err := ledger.Decode(text)
	r.mu.Lock()
	r.index = index
	if err != nil {
		epoch, _ := r.ledger.Epoch()
		r.mu.Unlock()
		return ledger.EntryResult{Epoch: epoch, Err: err}
	}
	result := r.ledger.Apply(e)
	r.mu.Unlock()
	r.onApplied(result.Epoch)
	return result
}

// Snapshot writes the state down at once, as it is small, and hands it over at leisure.
func (r *ledgerStore) Snapshot() (write func(io.Writer) error, err error) {
	var text []byte
	r.view(func(l *ledger.Ledger) { text = l.Save() })
	return func(w io.Writer) error {
		_, err := w.Write(text)
		return err
	}, nil
}

// Digest tells replicas with the same state from others (P7).
func (r *ledgerStore) Digest() (index uint64, sum []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	hash := r.ledger.Hash()
	return r.index, hash[:]
}

// Restore replaces the state.
func (r *ledgerStore) Restore(from io.Reader) error {
	text, err := io.ReadAll(from)
	if err != nil {
		return err
	}
	l, err := ledger.Load(text)
	if err != nil {
		return err
	}
	r.mu.Lock()
	r.ledger, r.index = l, 0
	r.mu.Unlock()
	r.onApplied(r.currentEpoch())
	return nil
}
