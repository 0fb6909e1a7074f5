// Package negotiator is the daemon that decides who gets what. It watches the machines at the collectors, hears from every schedd what it
// wants, and whenever something has changed it makes a plan ([match]) by fair share ([share]) and sends grants.
package negotiator
