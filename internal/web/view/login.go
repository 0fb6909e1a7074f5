package view

import (
	"cmp"
	"fmt"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/config"
	"github.com/roost-batch/roost/internal/document"
	"github.com/roost-batch/roost/internal/web/route"
	"github.com/roost-batch/roost/internal/web/session"
	"github.com/roost-batch/roost/internal/wire"
)

// LoginPage is the page where a link of roost web login leads. It offers the other ways
// to log in.
type LoginPage struct {
	Version   int             `json:"v"`
	LoggedIn  string          `json:"user,omitempty"` // who is logged in already
	Providers []LoginProvider `json:"providers,omitempty"`
	Password  bool            `json:"password,omitempty"` // the form of passwords is there
}

// LoginProvider is an OpenID provider.
type LoginProvider struct {
	Name  string `json:"name"`
	Title string `json:"title"`
}

func titleOf(p *config.OIDCProvider) string { return cmp.Or(p.Title, p.Name) }

// Login returns the view of that page.
func Login(web *config.WebSettings) func(*route.Call) (any, error) {
	return func(c *route.Call) (any, error) {
		p := LoginPage{Version: document.Version, Password: web.PAMService != ""}
		for i := range web.Providers {
			p.Providers = append(p.Providers, LoginProvider{web.Providers[i].Name, titleOf(&web.Providers[i])})
		}
		if c.Session != nil {
			p.LoggedIn = c.Session.User
		}
		return p, nil
	}
}

// Callback is what a provider has the browser bring back. The page sends it on by POST:
// so no read changes state, and it stays out of the history.
type Callback struct {
	Version  int    `json:"v"`
	Provider string `json:"provider"`
	Title    string `json:"title"`
	State    string `json:"state"`
	Code     string `json:"code"`
	Issuer   string `json:"iss"`
}

// ProviderCallback returns the view of the page where a provider leads back to.
func ProviderCallback(web *config.WebSettings) func(*route.Call) (any, error) {
	return func(c *route.Call) (any, error) {
		for i := range web.Providers {
			p := &web.Providers[i]
			if p.Name != c.PathValue("provider") {
				continue
			}
			if why := c.QueryValue("error"); why != "" {
				return nil, fmt.Errorf("%s: %w: it has not logged you in: %.100s %.300s", titleOf(p),
					roost.PermissionDenied, why, c.QueryValue("error_description"))
			}
			return Callback{Version: document.Version, Provider: p.Name, Title: titleOf(p),
				State: c.QueryValue("state"), Code: c.QueryValue("code"), Issuer: c.QueryValue("iss")}, nil
		}
		return nil, fmt.Errorf("provider %.40q: %w: the node file has none of that name", c.PathValue("provider"),
			roost.NotFound)
	}
}

// LoginRequest is the body of a login. One field is set.
type LoginRequest struct {
	Token string    `json:"token,omitempty"` // of roost web login
	Key   *KeyProof `json:"key,omitempty"`   // from other machines
}

// KeyProof is a challenge that the key of roost login has signed.
type KeyProof struct {
	Certificate []byte `json:"certificate"` // of the login
	Challenge   []byte `json:"challenge"`
	Host        string `json:"host"`      // of the URL that the program has called
	Signature   []byte `json:"signature"` // by Ed25519, of the statement that roost-http(7) describes
}

// Proof returns the proof in a body.
func (r *LoginRequest) Proof() (p session.Proof, err error) {
	if (r.Token == "") == (r.Key == nil) {
		return p, fmt.Errorf("login: %w: send either a login token or a signed challenge", roost.Invalid)
	}
	if r.Key == nil {
		return session.Proof{Token: r.Token}, nil
	}
	return session.Proof{Derived: &wire.DerivedProof{Certificate: r.Key.Certificate, Ticket: r.Key.Challenge,
		Host: r.Key.Host, Signature: r.Key.Signature}}, nil
}

// Challenge is what the key of a login signs. It is good once and for ten minutes.
type Challenge struct {
	Version   int    `json:"v"`
	Node      string `json:"node"` // whose login signs
	Challenge []byte `json:"challenge"`
}
