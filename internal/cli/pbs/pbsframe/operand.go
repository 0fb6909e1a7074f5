package pbsframe

import (
	"cmp"
	"strings"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/cli/frame"
	"github.com/roost-batch/roost/internal/document"
)

// Dialect is the PBS that the user speaks: what the environment names, else what the node
// is set to.
func Dialect(c *frame.Invocation) (roost.PBSDialect, error) {
	if named := c.Getenv(dialectVariable); named != "" {
		d, err := roost.ParsePBSDialect(named)
		if err != nil {
			return "", frame.KindErrorf(roost.Usage, "%s: there is no dialect %q; there are %s and %s", dialectVariable,
				named, roost.OpenPBS, roost.Torque)
		}
		return d, nil
	}
	reply, err := c.ServerInfo()
	if err != nil {
		return "", err
	}
	if d, err := roost.ParsePBSDialect(reply.GetDialect()); err == nil {
		return d, nil
	}
	return roost.OpenPBS, nil // a newer schedd knows more
}

// dialectVariable is the variable of the environment that goes before what the node says.
const dialectVariable = "ROOST_DIALECT"

// UnknownJobText is what is said of a job that there is not.
func UnknownJobText(c *frame.Invocation) string {
	if d, err := Dialect(c); err == nil && d == roost.Torque {
		return "Unknown Job Id Error"
	}
	return "Unknown Job Id"
}

// FullOperand is an operand as OpenPBS names it in messages, with its server. Where it
// names none, that is the server that is asked. What is no id stays as it is.
func FullOperand(c *frame.Invocation, text string) string {
	id, _, _ := strings.Cut(text, "@")
	if _, ok := ParseID(text); !ok || strings.Contains(id, ".") {
		return cmp.Or(id, text)
	}
	host := cmp.Or(OperandHost(text), c.DefaultServer())
	if host == "" {
		var err error
		if host, err = c.ServerName(); err != nil {
			return id
		}
	}
	return id + "." + host
}

// ParseID reads the id of a job, a task, an array or a range of it. It takes "123",
// "123.host", "123[]", "123[7]" and "123[1-5]", and leaves "@server" off. The host in it
// is compared without regard to what stands behind its first point.
func ParseID(text string) (string, bool) {
	id, _, _ := strings.Cut(text, "@")
	n := document.LeadingDigits(id)
	if n == 0 || n > 12 || strings.ContainsFunc(text, IsInvalidID) {
		return "", false
	}
	rest := id[n:]
	if strings.HasPrefix(rest, "[") {
		inside, after, closed := strings.Cut(rest[1:], "]")
		if _, err := roost.ParseArrayIndexes(inside); !closed || inside != "" && err != nil {
			return "", false
		}
		rest = after
	}
	if rest != "" && (rest[0] != '.' || len(rest) == 1) {
		return "", false
	}
	return strings.Replace(id, "[]", "", 1), true
}

// OperandHost is the schedd that an operand such as 12@n2 names; an id says itself where
// its job is.
func OperandHost(text string) string {
	if id, host, _ := strings.Cut(text, "@"); !strings.Contains(id, ".") {
		return host
	}
	return ""
}

// SameHost compares names without regard to domains and case.
func SameHost(a, b string) bool {
	a, _, _ = strings.Cut(a, ".")
	b, _, _ = strings.Cut(b, ".")
	return strings.EqualFold(a, b)
}

// IsInvalidID reports whether no id has this character: a blank, a slash, or one that
// moves the cursor.
func IsInvalidID(r rune) bool {
	return !strings.ContainsRune("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-:,[]@", r)
}

// IDText is the id of a job as PBS writes it: "123[].host" for an array.
func IDText(id string, array bool) string {
	if !array {
		return id
	}
	for i := range id {
		if id[i] == '[' {
			return id
		}
		if id[i] == '.' {
			return id[:i] + "[]" + id[i:]
		}
	}
	return id + "[]"
}
