package proof

import (
	"time"

	"github.com/roost-batch/roost/internal/config"
)

// Programs are the commands of the children.
type Programs struct {
	OIDC []string // speaks to providers
	PAM  []string // checks passwords
}

// Verifier checks proofs. It is safe for concurrent use.
type Verifier struct {
	web      *config.WebSettings
	programs Programs
	tickets  *ticketOffice
	children chan struct{}
	attempts *attemptCounter
	now      func() time.Time
}

// NewVerifier returns the verifier of a schedd whose node has a web daemon.
func NewVerifier(web *config.WebSettings, programs Programs) (*Verifier, error) {
	tickets, err := newTicketOffice()
	return &Verifier{web: web, programs: programs, tickets: tickets, children: make(chan struct{}, maxChildren),
		attempts: newAttemptCounter(), now: time.Now}, err
}

// Proved is what a proof has shown.
type Proved struct {
	Account string    // on the schedd's host
	At      time.Time // when the user has shown it; zero: not known
}
