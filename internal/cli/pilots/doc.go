// Package pilots has the commands with which a user lets a pool grow into other batch
// systems, where the user has an account.
package pilots
