package proof

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"unicode"

	"github.com/roost-batch/roost"
)

// Bounds on what is typed into the form of passwords.
const (
	maxUserName = 64
	MaxPassword = 1024
)

// PasswordTry is a password that somebody has typed.
type PasswordTry struct {
	User     string
	Password []byte
	From     string // address of the browser
	// says why an account may not log in by a password, or nil
	Check func(user string) error
}

// CheckPassword has PAM check the password of an account. The password is overwritten.
func (v *Verifier) CheckPassword(ctx context.Context, try PasswordTry) (p Proved, err error) {
	user, password, from := try.User, try.Password, try.From
	defer clear(password)
	switch {
	case v.web.PAMService == "":
		return p, fmt.Errorf("login: %w: passwords are off here: use a link of roost web login", roost.PermissionDenied)
	case user == "" || len(user) > maxUserName || strings.ContainsFunc(user, unicode.IsControl):
		return p, fmt.Errorf("login: %w: this is not the name of an account", roost.Invalid)
	case len(password) == 0 || len(password) > MaxPassword || bytes.IndexByte(password, 0) >= 0:
		return p, fmt.Errorf("login: %w: a password has 1 to %d bytes", roost.Invalid, MaxPassword)
	}
	if err := v.attempts.count(v.now(), "the account "+user, "the address "+from); err != nil {
		return p, err
	}
	if try.Check(user) != nil { // whether the password of root is right is nobody's business
		return p, errWrongPassword
	}
	head, err := json.Marshal(PasswordQuestion{Service: v.web.PAMService, ConfDir: v.web.PAMDir, User: user,
		From: from})
	if err != nil {
		return p, err
	}
	var a PasswordAnswer
	in := io.MultiReader(bytes.NewReader(append(head, '\n')), bytes.NewReader(password))
	switch err := v.ask(ctx, v.programs.PAM, in, &a); {
	case err != nil:
		return p, err
	case a.Broken:
		return p, fmt.Errorf("login: %w: PAM cannot check passwords now: %.300s", roost.Unavailable, a.Error)
	case a.Error != "" || a.User != user: // the same answer for accounts that are not there
		return p, errWrongPassword
	}
	return Proved{Account: user, At: v.now()}, nil
}

var errWrongPassword = fmt.Errorf("login: %w: the password is wrong, or there is no such account that may log in",
	roost.PermissionDenied)
