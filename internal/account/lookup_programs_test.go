//go:build !cgo

package account

import "testing"

// TestOtherUser checks what getent is asked for the users that /etc/passwd does not have.
func TestOtherUser(t *testing.T) {
	for _, key := range []string{"root", "0"} {
		u, err := otherUser(key)
		if err != nil || u.Username != "root" || u.Uid != "0" || u.HomeDir != "/root" {
			t.Errorf("%s: got %+v, %v", key, u, err)
		}
	}
	for _, key := range []string{"nobody-of-that-name", "1234567891", "--version"} {
		if u, err := otherUser(key); err == nil {
			t.Errorf("%s: got %+v", key, u)
		}
	}
}
