package transfer

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/config"
	"github.com/roost-batch/roost/internal/metrics"
	"github.com/roost-batch/roost/internal/object"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/schedd/queue/jobad"
)

// ObjectAccount is what a user may do in an object store. Errors are *object.StoreError.
type ObjectAccount interface {
	Stat(ctx context.Context, bucket, key string) (object.Info, error)
	CheckBucket(ctx context.Context, bucket string) error
	List(ctx context.Context, bucket, prefix string, most int) ([]object.Info, error)
	Read(ctx context.Context, bucket, key string, most int) (data []byte, etag string, err error)
	Replace(ctx context.Context, bucket, key, etag string, data []byte) error
	PutEmpty(ctx context.Context, bucket, key string, metadata map[string]string) (etag string, err error)
	BeginUpload(ctx context.Context, bucket, key string, metadata map[string]string) (id string, err error)
	Parts(ctx context.Context, bucket, key, id string) ([]object.Part, error)
	Complete(ctx context.Context, bucket, key, id string, parts []object.Part) (etag string, err error)
	Abort(ctx context.Context, bucket, key, id string) error
	PresignGet(bucket, key string, valid time.Duration) (string, error)
	PresignPart(bucket, key, id string, part int, valid time.Duration) (string, error)
	Waits() time.Duration
}

// OpenObjectAccount opens an object store with the keys of a user.
type OpenObjectAccount func(store *config.ObjectStore, keys []byte) (ObjectAccount, error)

// objectError says why an attempt cannot have its objects, or its outputs cannot become
// some. Its user has to do something.
type objectError struct{ cause error }

func (e objectError) Error() string { return e.cause.Error() }
func (e objectError) Unwrap() error { return e.cause }

// keysLifetime is how long the keys of a user are used without another look. They are in
// memory only.
const keysLifetime = time.Minute

// maxAccounts bounds the accounts that are remembered.
const maxAccounts = 256

// objectStores are the object stores of this node, and accounts in them.
type objectStores struct {
	transfers *FileTransfers
	settings  []config.ObjectStore
	open      OpenObjectAccount // nil: this daemon reaches none
	metrics   *metrics.Schedd   // nil: nothing is counted

	mu       sync.Mutex
	accounts map[objectUser]*objectAccount
}

// objectUser is whose keys are used, and where.
type objectUser struct {
	Owner string // name at the submit node
	Host  string // the submit node
	Store string // name of the object store
}

// objectAccount is an account with its settings.
type objectAccount struct {
	ObjectAccount
	store  *config.ObjectStore
	digest [sha256.Size]byte // of the keys
	readAt time.Time         // of the keys
	stale  atomic.Bool       // the object store refuses the keys, and the user may have set others
}

// explain says what went wrong with an object, and what to do. What only its user or an
// administrator can put right is an objectError.
func (a *objectAccount) explain(u jobad.ObjectURL, err error) error {
	if err == nil || errors.Is(err, context.Canceled) {
		return err
	}
	at := fmt.Sprintf("object store %s (%s), bucket %s, key %s", a.store.Name, a.store.Endpoint, u.Bucket, u.Key)
	answer, ok := errors.AsType[*object.StoreError](err)
	cure := ""
	switch {
	case errors.Is(err, roost.Unavailable):
		return fmt.Errorf("%s: %w: %w", at, roost.Unavailable, err)
	case ok && answer.Code == "NoSuchBucket":
		cure = "there is no such bucket: make it, or correct the URL in the job; then release the task"
	case errors.Is(err, roost.NotFound):
		cure = "there is no such object: put it there, or correct the URL in the job; then release the task"
	case errors.Is(err, roost.PermissionDenied):
		a.stale.Store(true)
		cure = fmt.Sprintf("your keys do not allow it: see whose they are, and set those that do with: roost secret "+
			"set %s; then release the task", a.store.Secret)
	case errors.Is(err, roost.Conflict):
		cure = "it was replaced meanwhile: see who writes it, and release the task"
	default:
		cure = "see what the object store says to that, and release the task"
	}
	return objectError{fmt.Errorf("%s: %w: %s", at, err, cure)}
}

// count counts the objects of an attempt by what became of them.
func (s *objectStores) count(direction, objects int, bytes int64, err error) {
	if s.metrics == nil || errors.Is(err, context.Canceled) {
		return
	}
	result := metrics.ObjectsMoved
	if _, refused := errors.AsType[objectError](err); refused {
		result = metrics.ObjectsRefused
	} else if err != nil {
		result = metrics.ObjectsFailed
	}
	s.metrics.ObjectsMoved.Add(float64(objects), direction, result)
	if err == nil {
		s.metrics.ObjectBytes.Add(float64(bytes), direction)
	}
}

// accountFor returns the account of a user in the object store that has a bucket.
func (s *objectStores) accountFor(ctx context.Context, owner, host string, u jobad.ObjectURL) (*objectAccount, error) {
	store := config.FindObjectStore(s.settings, u.Bucket)
	switch {
	case s.open == nil || len(s.settings) == 0:
		return nil, objectError{fmt.Errorf("%s: %w: the submit node %s has no object store: an administrator names "+
			"one in an object_store block of its node file, see roost-node(5)", u, roost.Invalid,
			s.transfers.host)}
	case store == nil:
		return nil, objectError{fmt.Errorf("%s: %w: no object store of the submit node %s has the bucket %s: correct "+
			"the URL, or ask an administrator to add it to an object_store block of the node file", u, roost.Invalid,
			s.transfers.host, u.Bucket)}
	}
	return s.account(ctx, objectUser{owner, host, store.Name}, store)
}

// account returns an account with keys that were read lately.
func (s *objectStores) account(ctx context.Context, of objectUser, store *config.ObjectStore) (*objectAccount, error) {
	s.mu.Lock()
	known := s.accounts[of]
	s.mu.Unlock()
	if known != nil && !known.stale.Load() && time.Since(known.readAt) < keysLifetime {
		return known, nil
	}
	reader := newSecretReader(s.transfers)
	defer reader.close()
	secrets, err := reader.fetch(ctx, &wire.SecretsRequest{Owner: of.Owner, Host: of.Host,
		Secrets: []*wire.SecretText{{Name: store.Secret}}})
	if refused, ok := errors.AsType[secretError](err); ok {
		return nil, objectError{fmt.Errorf("object store %s (%s) needs keys of yours: %w: store them with: roost "+
			"secret set %s <~/.aws/credentials; then release the task", store.Name, store.Endpoint, refused.cause,
			store.Secret)}
	}
	if err != nil {
		return nil, err
	}
	keys := secrets[0].GetText()
	a := &objectAccount{store: store, digest: sha256.Sum256(keys), readAt: time.Now()}
	if known != nil && known.digest == a.digest { // its connections are open
		a.ObjectAccount = known.ObjectAccount
	} else if a.ObjectAccount, err = s.open(store, keys); err != nil {
		return nil, objectError{fmt.Errorf("object store %s (%s): your secret %s: %w", store.Name, store.Endpoint,
			store.Secret, err)}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for other, o := range s.accounts {
		if len(s.accounts) >= maxAccounts || time.Since(o.readAt) > time.Hour {
			delete(s.accounts, other)
		}
	}
	s.accounts[of] = a
	return a, nil
}
