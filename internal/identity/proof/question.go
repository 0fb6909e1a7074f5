package proof

import "time"

// OIDCRole is the first argument with which the program roost-web runs the child that
// speaks to providers.
const OIDCRole = "oidc-agent"

// Question is what the child of OIDCRole reads. With Code it exchanges that for an ID
// token; without, it makes the address that the browser goes to.
type Question struct {
	Issuer      string   `json:"issuer"`
	Client      string   `json:"client"`
	Secret      string   `json:"secret"` // of the client; empty: it has none
	Scopes      []string `json:"scopes"`
	Claim       string   `json:"claim"`       // what names the user
	Authorities []byte   `json:"authorities"` // certificates in PEM; empty: those of the system
	Local       bool     `json:"local"`       // the provider may be on this host or link
	Redirect    string   `json:"redirect"`    // where the browser comes back to

	State    string    `json:"state"`
	Nonce    string    `json:"nonce"`
	Verifier string    `json:"verifier"`
	Begun    time.Time `json:"begun"`
	Fresh    bool      `json:"fresh"`

	Code           string `json:"code"`
	ResponseIssuer string `json:"response_issuer"` // RFC 9207
}

// Answer is what the child says.
type Answer struct {
	URL    string    `json:"url,omitempty"`
	Value  string    `json:"value,omitempty"`  // of the claim
	Proved time.Time `json:"proved,omitzero"`  // when the provider has asked its user
	Error  string    `json:"error,omitempty"`  // empty: it went well
	Refuse bool      `json:"refuse,omitempty"` // the answer of the provider is not valid, and not merely missing
}

// PasswordQuestion is what roost-pam reads: one line of JSON, and then the password, to
// the end.
type PasswordQuestion struct {
	Service string `json:"service"` // file of /etc/pam.d
	ConfDir string `json:"conf_dir,omitempty"`
	User    string `json:"user"`
	From    string `json:"from"`
}

// PasswordAnswer is what roost-pam says.
type PasswordAnswer struct {
	User  string `json:"user,omitempty"` // as PAM has it in the end
	Error string `json:"error,omitempty"`
	// the system cannot check passwords now; nothing is said about this one
	Broken bool `json:"broken,omitempty"`
}
