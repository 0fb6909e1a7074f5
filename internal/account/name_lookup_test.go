package account

import (
	"errors"
	"os/exec"
	"os/user"
	"strings"
	"testing"
)

// TestNames compares the look-ups of a process's own names with those of id.
func TestNames(t *testing.T) {
	t.Setenv("USER", "somebody-else")
	idOutput := func(flag string) string {
		out, err := exec.CommandContext(t.Context(), "id", flag).Output()
		if err != nil {
			t.Skip("SKIPPED: NO id, or it does not know this user")
		}
		return strings.TrimSpace(string(out))
	}
	u, err := CurrentUser()
	if err != nil || u.Username != idOutput("-un") || u.Uid != idOutput("-u") {
		t.Errorf("this user: got %+v, %v", u, err)
	}
	if same, err := UserNamed(u.Username); err != nil || same.Uid != u.Uid || same.HomeDir != u.HomeDir {
		t.Errorf("%s: got %+v, %v", u.Username, same, err)
	}
	if _, err := UserNamed("nobody-of-that-name"); !errors.As(err, new(user.UnknownUserError)) {
		t.Errorf("an unknown name: got %v", err)
	}
	if name, err := GroupName(0); err != nil || name != "root" {
		t.Errorf("group 0: got %q, %v", name, err)
	}
	if name, err := GroupName(1234567891); err == nil {
		t.Errorf("a gid that no group has: got %q", name)
	}
}
