package doctor

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/roost-batch/roost/internal/config"
	"github.com/roost-batch/roost/internal/document"
)

const (
	maxDiscovery = 1 << 20     // bytes
	maxClockSkew = time.Minute // more, and ID tokens are refused
)

// checkProvider reads what an OpenID provider says of itself (OpenID Connect Discovery),
// and compares its clock.
func checkProvider(ctx context.Context, p *config.OIDCProvider, now func() time.Time) checkResult {
	fail := func(cure, format string, args ...any) checkResult {
		return checkResult{"oidc", levelError, p.Name + ": " + fmt.Sprintf(format, args...), cure}
	}
	for _, file := range []string{p.SecretFile, p.Accounts} {
		if _, err := os.Stat(file); file != "" && err != nil {
			return fail("make the file, or correct its name in the node file", "%v", err)
		}
	}
	secure := &tls.Config{MinVersion: tls.VersionTLS12}
	if p.Authority != "" {
		text, err := os.ReadFile(p.Authority)
		secure.RootCAs = x509.NewCertPool()
		if err == nil && !secure.RootCAs.AppendCertsFromPEM(text) {
			err = fmt.Errorf("%s has no certificate", p.Authority)
		}
		if err != nil {
			return fail("write the certificates that sign the provider's into it, in PEM", "%v", err)
		}
	}
	ctx, cancel := context.WithTimeout(ctx, webTimeout)
	defer cancel()
	client := http.Client{Transport: &http.Transport{TLSClientConfig: secure, DisableKeepAlives: true},
		CheckRedirect: func(r *http.Request, _ []*http.Request) error {
			return fmt.Errorf("it redirects to %s, which is not followed", r.URL.Redacted())
		}}
	q, err := http.NewRequestWithContext(ctx, http.MethodGet,
		strings.TrimSuffix(p.Issuer, "/")+"/.well-known/openid-configuration", nil)
	if err != nil {
		return fail("correct issuer in the node file", "%v", err)
	}
	answer, err := client.Do(q)
	if err != nil {
		return fail("compare issuer, and look at the network between; the other ways to log in work",
			"it cannot be reached: %v", err)
	}
	defer answer.Body.Close()
	var says struct{ Issuer, Token_endpoint, Jwks_uri string }
	err = json.NewDecoder(io.LimitReader(answer.Body, maxDiscovery)).Decode(&says)
	at, dateErr := http.ParseTime(answer.Header.Get("Date"))
	switch skew := now().Sub(at).Abs(); {
	case answer.StatusCode != http.StatusOK || err != nil:
		return fail("issuer has to be the address under which it has its openid-configuration",
			"%s is no description of a provider: %s", q.URL, answer.Status)
	case says.Issuer != p.Issuer:
		return fail("write issuer as the provider does", "it calls itself %.200q", says.Issuer)
	case says.Token_endpoint == "" || says.Jwks_uri == "":
		return fail("ask who runs it", "it names no token endpoint or no keys")
	case dateErr == nil && skew > maxClockSkew:
		return fail("run an NTP client on both", "its clock and this machine's differ by %s", document.SpanText(skew))
	}
	return checkResult{"oidc", levelOK, fmt.Sprintf("%s: %s answers", p.Name, p.Issuer), ""}
}

// checkPasswords checks the program that asks PAM, and the service's file.
func checkPasswords(w *config.WebSettings) []checkResult {
	if w.PAMService == "" {
		return nil
	}
	own, err := os.Executable()
	if err != nil {
		return []checkResult{{"pam", levelWarning, err.Error(), ""}}
	}
	dir := w.PAMDir
	if dir == "" {
		dir = "/etc/pam.d"
	}
	return []checkResult{checkPasswordProgram(filepath.Join(filepath.Dir(own), "roost-pam")),
		checkPasswordFile("the service", filepath.Join(dir, w.PAMService), "install it from etc/web/roost.pam")}
}

// checkPasswordProgram checks that only root could have changed the program that reads
// passwords. It needs no mode for other users: the schedd starts it.
func checkPasswordProgram(path string) checkResult {
	f := checkPasswordFile("the program", path, "build it with: make build, where libpam0g-dev is installed")
	info, err := os.Stat(path)
	if f.Level != levelOK || err != nil {
		return f
	}
	switch mode := info.Mode(); {
	case mode&(os.ModeSetuid|os.ModeSetgid) != 0:
		f.Level, f.Text, f.Hint = levelError, path+" gives its account to whoever starts it", "chmod 0755 "+path
	case mode&0o100 == 0:
		f.Level, f.Text, f.Hint = levelError, path+" cannot be run", "chmod 0755 "+path
	}
	return f
}

// checkPasswordFile checks that a file is there, and that only root and who runs the pool
// could have changed it.
func checkPasswordFile(what, path, cure string) checkResult {
	info, err := os.Stat(path)
	if err != nil {
		if errors.Is(err, os.ErrNotExist) {
			return checkResult{"pam", levelError, fmt.Sprintf("%s is not there: %s", what, path), cure}
		}
		return checkResult{"pam", levelError, err.Error(), "ask as root"}
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if info.Mode()&0o022 != 0 {
		return checkResult{"pam", levelError, fmt.Sprintf("others can write to %s (mode %04o)", path,
			info.Mode().Perm()), "chmod go-w " + path}
	}
	if ok && stat.Uid != 0 && int(stat.Uid) != os.Geteuid() {
		return checkResult{"pam", levelError, fmt.Sprintf("%s belongs to uid %d", path, stat.Uid), "chown root " + path}
	}
	return checkResult{"pam", levelOK, path, ""}
}
