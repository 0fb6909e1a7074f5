package ledger

import (
	"fmt"
	"hash/fnv"
	"slices"
	"strings"
	"time"

	"github.com/roost-batch/roost"
)

// Secret is a value of a user that tasks of the user's jobs get. The ledger has it in
// sealed form only: the key is in a file of the central managers, and in no entry and no
// snapshot.
type Secret struct {
	Owner    string          `json:"owner"` // the user, without a node
	Name     string          `json:"name"`
	Hosts    []string        `json:"hosts"`    // submit nodes whose jobs of that user may have it
	Revision uint64          `json:"revision"` // counts the changes of this object
	Version  uint64          `json:"version"`  // counts the values that it has had
	SetAt    int64           `json:"set_at"`   // unix nanoseconds: when the present value was set
	Size     int             `json:"bytes"`    // of the value
	Key      string          `json:"key"`      // id of the key with which it is sealed
	Sealed   []byte          `json:"sealed"`
	History  []SecretVersion `json:"history"` // the latest last
}

// SecretVersion says when a value was set and by whom.
type SecretVersion struct {
	Version uint64    `json:"version"`
	At      time.Time `json:"at"`
	By      string    `json:"by"` // "ann@node"
	Size    int       `json:"bytes"`
}

// SecretChange is what a user wants of a secret.
type SecretChange struct {
	Name  string   `json:"name"`
	Text  []byte   `json:"text,omitempty"`  // the new value; empty: it stays
	Allow []string `json:"allow,omitempty"` // submit nodes whose jobs may have it, too
	Deny  []string `json:"deny,omitempty"`  // submit nodes whose jobs may have it no longer
}

// SecretInfo is what a user sees of a secret: everything but the value.
type SecretInfo struct {
	Name     string          `json:"name"`
	Owner    string          `json:"owner"`
	Hosts    []string        `json:"hosts"`
	Version  uint64          `json:"version"`
	Bytes    int             `json:"bytes"`
	Versions []SecretVersion `json:"versions"`
}

// Bounds on secrets.
const (
	MaxSecretsOfUser     = 200
	MaxSecretBytesOfUser = 4 << 20
	MaxSecretBytes       = 64 << 20 // of all users together: each replica has them in memory
	MaxSecretHosts       = 100
	MaxSecretHistory     = 20
	maxSealing           = 64 // bytes by which a sealed value is longer
)

// secretKey names a secret among those of all users.
func secretKey(owner, name string) string { return owner + "/" + name }

func (s Secret) name() string     { return secretKey(s.Owner, s.Name) }
func (s Secret) users() []string  { return nil }
func (s Secret) groups() []string { return nil }

func (s Secret) check(l *Ledger) error {
	if err := checkAccountName("a user", s.Owner); err != nil {
		return err
	}
	if err := roost.CheckSecretName(s.Name); err != nil {
		return err
	}
	old, _ := FindSecret(l, s.Owner, s.Name)
	switch {
	case s.Revision != old.Revision+1:
		return fmt.Errorf("%w: it has been changed meanwhile: try again", roost.Conflict)
	case s.Version < old.Version || s.Version > old.Version+1 || s.Version == 0:
		return fmt.Errorf("version %d cannot follow version %d", s.Version, old.Version)
	case s.Size < 1 || s.Size > roost.MaxSecretBytes || len(s.Sealed) > s.Size+maxSealing || len(s.Sealed) == 0:
		return fmt.Errorf("it has %d bytes, and a secret has from 1 to %d", s.Size, roost.MaxSecretBytes)
	case len(s.Hosts) == 0 || len(s.Hosts) > MaxSecretHosts:
		return fmt.Errorf("it names %d submit nodes, and from 1 to %d are possible", len(s.Hosts), MaxSecretHosts)
	case len(s.History) > MaxSecretHistory:
		return fmt.Errorf("it lists %d versions, and %d is the most", len(s.History), MaxSecretHistory)
	}
	if err := checkAccountNames("a node", s.Hosts); err != nil {
		return err
	}
	return s.checkRoom(l)
}

// checkRoom refuses a secret for which there is no room beside the others.
func (s Secret) checkRoom(l *Ledger) error {
	count, own, all := 1, s.Size, s.Size
	for o := range objectValues[Secret](l, KindSecret) {
		if o.name() == s.name() {
			continue
		}
		if all += o.Size; o.Owner == s.Owner {
			count, own = count+1, own+o.Size
		}
	}
	switch {
	case count > MaxSecretsOfUser:
		return fmt.Errorf("%w: %s has %d secrets already: remove some with roost secret rm", roost.Exhausted, s.Owner,
			MaxSecretsOfUser)
	case own > MaxSecretBytesOfUser:
		return fmt.Errorf("%w: the secrets of %s would have %d bytes, and %d is the most: remove some with "+
			"roost secret rm", roost.Exhausted, s.Owner, own, MaxSecretBytesOfUser)
	case all > MaxSecretBytes:
		return fmt.Errorf("%w: the secrets of all users would have %d bytes, and %d is the most", roost.Exhausted, all,
			MaxSecretBytes)
	}
	return nil
}

// FindSecret returns a secret of a user.
func FindSecret(l *Ledger, owner, name string) (Secret, bool) {
	return objectNamed[Secret](l, KindSecret, secretKey(owner, name))
}

// SecretsOf lists the secrets of a user by name; of all users for an empty name.
func SecretsOf(l *Ledger, owner string) []Secret {
	return slices.Collect(func(yield func(Secret) bool) {
		for s := range objectValues[Secret](l, KindSecret) {
			if (owner == "" || s.Owner == owner) && !yield(s) {
				return
			}
		}
	})
}

// SecretUse returns a secret for jobs of a user from a submit node, or why not. A user of
// the same name at another node may be somebody else, so its owner names the nodes.
func SecretUse(l *Ledger, owner, name, host string) (Secret, error) {
	subject := fmt.Sprintf("secret %q of %s", name, owner)
	s, ok := FindSecret(l, owner, name)
	if !ok {
		var known []string
		for _, o := range SecretsOf(l, owner) {
			if slices.Contains(o.Hosts, host) {
				known = append(known, o.Name)
			}
		}
		return s, fmt.Errorf("%s: %w: nobody has set it%s; set it with: roost secret set %s", subject, roost.NotFound,
			suggestName(name, known), name)
	}
	if !slices.Contains(s.Hosts, host) {
		return s, fmt.Errorf("%s: %w: it is for jobs that are submitted at %s, and not at %s; there its owner allows "+
			"it with: roost secret allow %s %s", subject, roost.PermissionDenied, strings.Join(s.Hosts, ", "), host,
			name, host)
	}
	return s, nil
}

// SecretsDigest returns a number that changes with each change of a secret; 0 if there is
// none.
func SecretsDigest(l *Ledger) uint64 {
	h, some := fnv.New64a(), false
	for s := range objectValues[Secret](l, KindSecret) {
		fmt.Fprintf(h, "%q %d %d\n", s.name(), s.Revision, s.SetAt)
		some = true
	}
	if !some {
		return 0
	}
	return h.Sum64()
}
