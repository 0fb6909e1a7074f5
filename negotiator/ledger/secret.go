package ledger

import (
	"fmt"
	"hash/fnv"
	"slices"
	"strings"
	"time"

	"github.com/roost-batch/roost"
)

// Secret is a value of a user, or of a group, that tasks get. Those of a group are for
// the jobs of all who have its capability. The ledger has it in sealed form only: the key
// is in a file of the central managers, and in no entry and no snapshot.
type Secret struct {
	Owner    string          `json:"owner"`           // the user, without a node; empty: it is of a group
	Group    string          `json:"group,omitempty"` // empty: it is of a user
	Name     string          `json:"name"`
	Hosts    []string        `json:"hosts"`    // submit nodes whose jobs of that user may have it; of a group: none
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
	Name  string   `json:"name"`            // as roost.ParseSecretName reads it
	Text  []byte   `json:"text,omitempty"`  // the new value; empty: it stays
	Allow []string `json:"allow,omitempty"` // submit nodes whose jobs may have it, too
	Deny  []string `json:"deny,omitempty"`  // submit nodes whose jobs may have it no longer
}

// SecretInfo is what a user sees of a secret: everything but the value.
type SecretInfo struct {
	Name     string          `json:"name"`
	Owner    string          `json:"owner,omitempty"`
	Group    string          `json:"group,omitempty"`
	MaySet   bool            `json:"may_set"` // whoever asks may change it
	Hosts    []string        `json:"hosts"`
	Version  uint64          `json:"version"`
	Bytes    int             `json:"bytes"`
	Versions []SecretVersion `json:"versions"`
}

// Bounds on secrets.
const (
	MaxSecretsOfUser     = 200      // likewise of a group
	MaxSecretBytesOfUser = 4 << 20  // likewise of a group
	MaxSecretBytes       = 64 << 20 // of all users together: each replica has them in memory
	MaxSecretHosts       = 100
	MaxSecretHistory     = 20
	maxSealing           = 64 // bytes by which a sealed value is longer
)

// SecretSubject is a user or a group that has secrets: one of both is empty.
type SecretSubject struct{ User, Group string }

// groupMark begins the names of groups among those of users.
const groupMark = "%"

// String returns "ann", or "%physics" for a group.
func (s SecretSubject) String() string {
	if s.Group != "" {
		return groupMark + s.Group
	}
	return s.User
}

// text is String for people.
func (s SecretSubject) text() string {
	if s.Group != "" {
		return "group " + s.Group
	}
	return s.User
}

// Subject returns whose secret it is.
func (s Secret) Subject() SecretSubject { return SecretSubject{s.Owner, s.Group} }

// FullName names a secret among those of all: "ann/db" or "%physics/db".
func (s Secret) FullName() string { return secretKey(s.Subject(), s.Name) }

func secretKey(subject SecretSubject, name string) string { return subject.String() + "/" + name }

// ShortName is how jobs and commands of those name it who may have it.
func (s Secret) ShortName() string { return roost.SecretName{Group: s.Group, Name: s.Name}.String() }

func (s Secret) name() string     { return s.FullName() }
func (s Secret) users() []string  { return nil }
func (s Secret) groups() []string { return nil }

func (s Secret) check(l *Ledger) error {
	if err := s.checkSubject(); err != nil {
		return err
	}
	if err := (roost.SecretName{Group: s.Group, Name: s.Name}).Check(); err != nil {
		return err
	}
	old, _ := FindSecret(l, s.Subject(), s.Name)
	switch {
	case s.Revision != old.Revision+1:
		return fmt.Errorf("%w: it has been changed meanwhile: try again", roost.Conflict)
	case s.Version < old.Version || s.Version > old.Version+1 || s.Version == 0:
		return fmt.Errorf("version %d cannot follow version %d", s.Version, old.Version)
	case s.Size < 1 || s.Size > roost.MaxSecretBytes || len(s.Sealed) > s.Size+maxSealing || len(s.Sealed) == 0:
		return fmt.Errorf("it has %d bytes, and a secret has from 1 to %d", s.Size, roost.MaxSecretBytes)
	case s.Group == "" && len(s.Hosts) == 0 || len(s.Hosts) > MaxSecretHosts:
		return fmt.Errorf("it names %d submit nodes, and from 1 to %d are possible", len(s.Hosts), MaxSecretHosts)
	case len(s.History) > MaxSecretHistory:
		return fmt.Errorf("it lists %d versions, and %d is the most", len(s.History), MaxSecretHistory)
	}
	if err := checkAccountNames("a node", s.Hosts); err != nil {
		return err
	}
	return s.checkRoom(l)
}

// checkSubject returns what is wrong with whose it is.
func (s Secret) checkSubject() error {
	switch {
	case s.Group == "" && strings.HasPrefix(s.Owner, groupMark):
		return fmt.Errorf("%q cannot be the name of a user with secrets: %s begins the names of groups", s.Owner,
			groupMark)
	case s.Group == "":
		return checkAccountName("a user", s.Owner)
	case s.Owner != "":
		return exclusiveFieldsError("an owner", "a group")
	case len(s.Hosts) > 0:
		return exclusiveFieldsError("a group", "submit nodes")
	}
	return nil
}

// checkRoom refuses a secret for which there is no room beside the others.
func (s Secret) checkRoom(l *Ledger) error {
	count, own, all := 1, s.Size, s.Size
	for o := range objectValues[Secret](l, KindSecret) {
		if o.name() == s.name() {
			continue
		}
		if all += o.Size; o.Subject() == s.Subject() {
			count, own = count+1, own+o.Size
		}
	}
	switch {
	case count > MaxSecretsOfUser:
		return fmt.Errorf("%w: %s has %d secrets already: remove some with roost secret rm", roost.Exhausted,
			s.Subject().text(), MaxSecretsOfUser)
	case own > MaxSecretBytesOfUser:
		return fmt.Errorf("%w: the secrets of %s would have %d bytes, and %d is the most: remove some with "+
			"roost secret rm", roost.Exhausted, s.Subject().text(), own, MaxSecretBytesOfUser)
	case all > MaxSecretBytes:
		return fmt.Errorf("%w: the secrets of all users would have %d bytes, and %d is the most", roost.Exhausted, all,
			MaxSecretBytes)
	}
	return nil
}

// FindSecret returns a secret of a user or group. A user may be called like the mark of a
// group, and has none.
func FindSecret(l *Ledger, of SecretSubject, name string) (Secret, bool) {
	s, ok := objectNamed[Secret](l, KindSecret, secretKey(of, name))
	if !ok || s.Subject() != of {
		return Secret{}, false
	}
	return s, true
}

// Secrets lists the secrets of all users and groups by name.
func Secrets(l *Ledger) []Secret { return slices.Collect(objectValues[Secret](l, KindSecret)) }

// SecretsFor lists the secrets that jobs of a user from a submit node may have. These are
// the user's own, and those of groups.
func SecretsFor(l *Ledger, user, host string) []Secret {
	return slices.DeleteFunc(Secrets(l), func(s Secret) bool {
		if s.Group != "" {
			return checkSecretGroup(l, user+"@"+host, s.Group) != nil
		}
		return s.Owner != user || !slices.Contains(s.Hosts, host)
	})
}

// SecretUse returns a secret for jobs of a user from a submit node, or why not. A user of
// the same name at another node may be somebody else: the owner of a secret names the
// nodes, and administrators say who is in a group.
func SecretUse(l *Ledger, user string, name roost.SecretName, host string) (Secret, error) {
	of := SecretSubject{user, name.Group}
	if name.Group != "" {
		of.User = ""
	}
	subject := fmt.Sprintf("secret %q of %s", name.Name, of.text())
	if name.Group != "" { // first: who is not in the group is not told which secrets it has
		if err := checkSecretGroup(l, user+"@"+host, name.Group); err != nil {
			return Secret{}, fmt.Errorf("%s: %w", subject, err)
		}
	}
	s, ok := FindSecret(l, of, name.Name)
	switch {
	case !ok && name.Group != "":
		return s, fmt.Errorf("%s: %w: nobody has set it%s; who has the capability %s sets it with: roost secret set %s",
			subject, roost.NotFound, suggestName(name.String(), namesFor(l, user, host)),
			roost.SecretSetCapability(name.Group), name)
	case !ok:
		return s, fmt.Errorf("%s: %w: nobody has set it%s; set it with: roost secret set %s", subject, roost.NotFound,
			suggestName(name.Name, namesFor(l, user, host)), name.Name)
	case s.Group == "" && !slices.Contains(s.Hosts, host):
		return s, fmt.Errorf("%s: %w: it is for jobs that are submitted at %s, and not at %s; there its owner allows "+
			"it with: roost secret allow %s %s", subject, roost.PermissionDenied, strings.Join(s.Hosts, ", "), host,
			name, host)
	}
	return s, nil
}

func namesFor(l *Ledger, user, host string) (names []string) {
	for _, s := range SecretsFor(l, user, host) {
		names = append(names, s.ShortName())
	}
	return names
}

// checkSecretGroup returns why a user, as "ann@node", may not use the secrets of a group.
func checkSecretGroup(l *Ledger, who, group string) error {
	if l.CheckCapability(who, roost.SecretSetCapability(group)) == nil {
		return nil
	}
	return l.CheckCapability(who, roost.SecretUseCapability(group))
}

// CheckSecretSet returns why a user, as "ann@node", may not change a secret that the user
// may use.
func CheckSecretSet(l *Ledger, who string, name roost.SecretName) error {
	if name.Group == "" {
		return nil
	}
	if err := l.CheckCapability(who, roost.SecretSetCapability(name.Group)); err != nil {
		return fmt.Errorf("secret %q of group %s: %w", name.Name, name.Group, err)
	}
	return nil
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
