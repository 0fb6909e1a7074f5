// Package view makes what the web daemon shows. Each view is one struct, which is encoded
// as JSON for the API and handed to a template for a page, so that a page can show
// nothing that the API does not have. What is in them are the documents of roost-json(7).
//
// A view asks the schedd with the login of the session's user. What is left out of its
// answers, such as environments of others, never reaches this package.
package view
