package roost

import (
	"fmt"
	"strings"
)

// Bounds on secrets.
const (
	MaxSecretBytes    = 256 << 10 // of one value
	MaxJobSecrets     = 32        // that a job names
	MaxJobSecretBytes = 1 << 20   // of all values of a job
	maxSecretName     = 64        // bytes
)

// SecretsDir is where a task finds its secrets, each as a file of its name.
const SecretsDir = "/run/secrets"

// SecretName names a secret of a user, or of a group of users.
type SecretName struct {
	Group string // empty: a user's own
	Name  string
}

// ParseSecretName reads "db", or "physics/db" of the group physics.
func ParseSecretName(text string) (SecretName, error) {
	group, name, ok := strings.Cut(text, "/")
	if !ok {
		return SecretName{Name: text}, CheckSecretName(text)
	}
	if err := checkSecretGroup(group); err != nil {
		return SecretName{}, err
	}
	return SecretName{group, name}, CheckSecretName(name)
}

// Check returns what is wrong with the name, nil if nothing is.
func (n SecretName) Check() error {
	if n.Group != "" {
		if err := checkSecretGroup(n.Group); err != nil {
			return err
		}
	}
	return CheckSecretName(n.Name)
}

// String is what ParseSecretName reads.
func (n SecretName) String() string {
	if n.Group == "" {
		return n.Name
	}
	return n.Group + "/" + n.Name
}

// checkSecretGroup returns what is wrong with the name of a group that has secrets.
func checkSecretGroup(group string) error {
	for i := range len(group) {
		c := group[i]
		letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
		if !letter && (i == 0 || c != '_' && c != '-') {
			return fmt.Errorf("%w: the name of a group has letters, digits, _ and -, and begins with a letter or "+
				"a digit", Invalid)
		}
	}
	if group == "" || len(group) > maxSecretName {
		return fmt.Errorf("%w: the name of a group of secrets has from 1 to %d characters", Invalid, maxSecretName)
	}
	return nil
}

// SecretValue is a secret as it is on its way to a task.
type SecretValue struct {
	Name    string
	Version uint64
	SetAt   int64 // unix nanoseconds: when that version was set
	Text    []byte
}

// MaxSecretVariable bounds a secret that a variable of the environment has, in bytes.
// execve(2) takes no more of a variable with its name.
const MaxSecretVariable = 100 << 10

// reservedVariables begin the names of variables that Roost sets itself.
var reservedVariables = []string{"ROOST_", "PBS_", "LISTEN_", "OMPI_", "PMI"}

// CheckSecretVariable returns what is wrong with the name of the variable that has a
// secret, nil if nothing is.
func CheckSecretVariable(name string) error {
	for i := range len(name) {
		c := name[i]
		letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_'
		if !letter && (i == 0 || c < '0' || c > '9') {
			return fmt.Errorf("%w: the name of a variable has letters, digits and _, and does not begin with a digit",
				Invalid)
		}
	}
	if name == "" || len(name) > maxSecretName {
		return fmt.Errorf("%w: the name of the variable of a secret has from 1 to %d characters", Invalid,
			maxSecretName)
	}
	for _, begin := range reservedVariables {
		if strings.HasPrefix(name, begin) {
			return fmt.Errorf("%w: variables that begin with %s are set by Roost", Invalid, begin)
		}
	}
	return nil
}

// CheckSecretName returns what is wrong with the name of a secret, nil if nothing is. It
// is the name of a file in the task.
func CheckSecretName(name string) error {
	for i := range len(name) {
		c := name[i]
		letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
		if !letter && (i == 0 || c != '_' && c != '-' && c != '.') {
			return fmt.Errorf("%w: the name of a secret has letters, digits, _, - and ., and begins with a letter or "+
				"a digit", Invalid)
		}
	}
	if name == "" || len(name) > maxSecretName {
		return fmt.Errorf("%w: the name of a secret has from 1 to %d characters", Invalid, maxSecretName)
	}
	return nil
}
