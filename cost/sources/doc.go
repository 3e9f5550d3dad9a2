// Package sources reads prices from those who publish them: the retail prices of Azure, the
// types of Linode, the bulk price list of AWS, the catalogues of Google Cloud and of
// DigitalOcean, which want a key, and any endpoint that speaks Infracost's protocol.
//
// It owns what each of them answers, and what in it is not the price that was asked for. It
// is the only room of package cost that uses a network. Package cache calls it in the
// background; nothing waits for it. An answer counts only if all of it was read: a source
// that fails gives no prices, and what was known before stays.
package sources
