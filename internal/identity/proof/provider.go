package proof

import (
	"bufio"
	"bytes"
	"context"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/config"
)

// Bounds on what a browser brings back, and on files of the administrator.
const (
	maxCode     = 4096
	maxAccounts = 8 << 20 // bytes of a file of accounts
	maxSecret   = 4096
)

// BeginProvider begins a login at a provider. It returns the ticket for the browser and
// the address that the browser goes to. With fresh the provider asks its user again.
func (v *Verifier) BeginProvider(ctx context.Context, name string, fresh bool) (sealed []byte, url string, err error) {
	q, err := v.question(name)
	if err != nil {
		return nil, "", err
	}
	t := ticket{ID: randomText(), Purpose: forProvider, Made: v.now(), Provider: name, State: randomText(),
		Nonce: randomText(), Verifier: randomText(), Fresh: fresh}
	t.fill(&q)
	answer, err := v.askProvider(ctx, name, &q)
	if err != nil {
		return nil, "", err
	}
	sealed, err = v.tickets.seal(t)
	return sealed, answer.URL, err
}

// ProviderAnswer is what a browser brings back from a provider.
type ProviderAnswer struct {
	Provider string
	Ticket   []byte
	State    string
	Code     string
	Issuer   string
}

// CheckProvider checks such an answer, and returns the account that the administrator has
// given to the user of the provider.
func (v *Verifier) CheckProvider(ctx context.Context, a ProviderAnswer) (p Proved, err error) {
	if len(a.Code) == 0 || len(a.Code) > maxCode || len(a.State) > maxCode || len(a.Issuer) > maxCode {
		return p, fmt.Errorf("login: %w: the provider has sent no code", roost.Invalid)
	}
	t, err := v.tickets.spend(a.Ticket, forProvider, v.now())
	if err != nil {
		return p, err
	}
	if t.Provider != a.Provider {
		return p, fmt.Errorf("login: %w: it was begun at another provider: begin again", roost.PermissionDenied)
	}
	if subtle.ConstantTimeCompare([]byte(t.State), []byte(a.State)) != 1 {
		return p, fmt.Errorf("login: %w: this is the answer to a login of another browser: begin again",
			roost.PermissionDenied)
	}
	q, err := v.question(t.Provider)
	if err != nil {
		return p, err
	}
	t.fill(&q)
	q.Code, q.ResponseIssuer = a.Code, a.Issuer
	answer, err := v.askProvider(ctx, t.Provider, &q)
	if err != nil {
		return p, err
	}
	p.At = answer.Proved
	p.Account, err = v.accountOf(t.Provider, answer.Value)
	return p, err
}

// fill adds the state of a login to a question.
func (t *ticket) fill(q *Question) {
	q.State, q.Nonce, q.Verifier, q.Begun, q.Fresh = t.State, t.Nonce, t.Verifier, t.Made, t.Fresh
}

// provider returns the settings of a provider.
func (v *Verifier) provider(name string) (*config.OIDCProvider, error) {
	i := slices.IndexFunc(v.web.Providers, func(p config.OIDCProvider) bool { return p.Name == name })
	if i < 0 {
		return nil, fmt.Errorf("provider %.40q: %w: the node file has none of that name", name, roost.NotFound)
	}
	return &v.web.Providers[i], nil
}

// question returns a question with the settings of a provider. The files are read each
// time, so that a new secret needs no restart.
func (v *Verifier) question(name string) (q Question, err error) {
	p, err := v.provider(name)
	if err != nil {
		return q, err
	}
	q = Question{Issuer: p.Issuer, Client: p.Client, Scopes: p.Scopes, Claim: p.Claim, Local: p.Local,
		Redirect: v.web.CallbackURL(p.Name)}
	if p.SecretFile != "" {
		secret, err := readFile(p.SecretFile, maxSecret)
		if err != nil {
			return q, fmt.Errorf("provider %s: %w: secret of the client: %w", name, roost.BadConfig, err)
		}
		q.Secret = strings.TrimSpace(string(secret))
	}
	if p.Authority != "" {
		if q.Authorities, err = readFile(p.Authority, maxAccounts); err != nil {
			return q, fmt.Errorf("provider %s: %w: authority: %w", name, roost.BadConfig, err)
		}
	}
	return q, nil
}

func readFile(path string, most int64) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, most+1))
	if err == nil && int64(len(text)) > most {
		err = fmt.Errorf("%s has more than %d bytes", path, most)
	}
	return text, err
}

// askProvider has the child speak to a provider.
func (v *Verifier) askProvider(ctx context.Context, name string, q *Question) (a Answer, err error) {
	in, err := json.Marshal(q)
	if err != nil {
		return a, err
	}
	err = v.ask(ctx, v.programs.OIDC, bytes.NewReader(in), &a)
	switch {
	case err != nil:
		return a, fmt.Errorf("provider %s: %w", name, err)
	case a.Error != "" && a.Refuse:
		return a, fmt.Errorf("provider %s: %w: %s", name, roost.PermissionDenied, a.Error)
	case a.Error != "":
		return a, fmt.Errorf("provider %s: %w: %s; try again, or log in with a link of roost web login", name,
			roost.Unavailable, a.Error)
	}
	return a, nil
}

// accountOf returns the account for the value of a claim, by the administrator's file.
// Each line has a value and an account.
func (v *Verifier) accountOf(name, value string) (string, error) {
	p, err := v.provider(name)
	if err != nil {
		return "", err
	}
	text, err := readFile(p.Accounts, maxAccounts)
	if err != nil {
		return "", fmt.Errorf("provider %s: %w: accounts: %w", name, roost.BadConfig, err)
	}
	account, err := FindAccount(text, value)
	switch {
	case errors.Is(err, roost.NotFound):
		return "", fmt.Errorf("provider %s: %w: the provider knows you as %s %q, and no account here has that: ask "+
			"the administrator for a line in the file of accounts", name, roost.PermissionDenied, p.Claim, value)
	case err != nil:
		return "", fmt.Errorf("provider %s: %s: %w", name, p.Accounts, err)
	}
	return account, nil
}

// FindAccount looks a value up in a file of accounts. A value with two accounts is a
// mistake of the file, because the first line would win in silence.
func FindAccount(text []byte, value string) (account string, err error) {
	lines := bufio.NewScanner(bytes.NewReader(text))
	for n := 1; lines.Scan(); n++ {
		line := strings.TrimSpace(lines.Text())
		if line == "" || line[0] == '#' {
			continue
		}
		i := strings.LastIndexAny(line, " \t") // a value may have blanks, an account has none
		if i < 0 {
			return "", fmt.Errorf("line %d: %w: write the value of the claim, a blank, and the account", n,
				roost.BadConfig)
		}
		if strings.TrimSpace(line[:i]) != value {
			continue
		}
		if account != "" && account != line[i+1:] {
			return "", fmt.Errorf("line %d: %w: %q has another account above", n, roost.BadConfig, value)
		}
		account = line[i+1:]
	}
	if err := lines.Err(); err != nil {
		return "", fmt.Errorf("%w: %w", roost.BadConfig, err)
	}
	if account == "" || value == "" {
		return "", fmt.Errorf("%q: %w", value, roost.NotFound)
	}
	return account, nil
}
