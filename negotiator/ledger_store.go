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
	index     uint64             // of the last applied entry; 0: unknown
	onApplied func(epoch uint64) // called after each entry and each restore
}

func newLedgerStore(applied func(epoch uint64)) *ledgerStore {
	return &ledgerStore{ledger: ledger.New(), onApplied: applied}
}

// view lets f read the ledger. f must copy what it retains.
func (r *ledgerStore) view(f func(*ledger.Ledger)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	f(r.ledger)
}

// currentEpoch returns the present epoch, as far as this replica has applied the log.
func (r *ledgerStore) currentEpoch() (epoch uint64) {
	r.view(func(l *ledger.Ledger) { epoch, _ = l.Epoch() })
	return epoch
}

// Apply applies one entry of the log, and returns a ledger.EntryResult.
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

// Snapshot copies the state at once, since it is small, and returns a function that
// writes it later.
func (r *ledgerStore) Snapshot() (write func(io.Writer) error, err error) {
	var text []byte
	r.view(func(l *ledger.Ledger) { text = l.Save() })
	return func(w io.Writer) error {
		_, err := w.Write(text)
		return err
	}, nil
}

// Digest returns a digest of the state, and the index of the last applied entry. Replicas
// at the same index must have the same digest (P7).
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
