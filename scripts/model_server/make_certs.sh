#!/bin/sh
# Makes a test CA and server certificates in a folder: make_certs.sh FOLDER
# ca.crt; server.crt/.key for localhost and 127.0.0.1; expired.*: the same, ended; wrong_host.*: for another name.
# Keys are made anew each time and are worth nothing; never commit them.
set -eu
dir=$1
umask 077
mkdir -p "$dir/db/new"
cd "$dir"

cat > ca.cnf <<'END'
[req]
distinguished_name = dn
prompt = no
[dn]
CN = Model server test CA
[ca]
default_ca = test
[test]
dir = db
database = db/index
new_certs_dir = db/new
serial = db/serial
default_md = sha256
policy = any
unique_subject = no
[any]
commonName = supplied
[v3_ca]
basicConstraints = critical,CA:TRUE
keyUsage = critical,keyCertSign,cRLSign
subjectKeyIdentifier = hash
[here]
basicConstraints = CA:FALSE
extendedKeyUsage = serverAuth
subjectAltName = DNS:localhost,IP:127.0.0.1
[elsewhere]
basicConstraints = CA:FALSE
extendedKeyUsage = serverAuth
subjectAltName = DNS:elsewhere.test
END
: > db/index
echo 01 > db/serial

new_key() {
	openssl ecparam -name prime256v1 -genkey -noout -out "$1.key"
}

# issue NAME EXTENSIONS START END: dates as YYYYMMDDHHMMSSZ
issue() {
	new_key "$1"
	openssl req -new -config ca.cnf -key "$1.key" -subj "/CN=$1" -out "$1.csr"
	openssl ca -batch -notext -config ca.cnf -cert ca.crt -keyfile ca.key -in "$1.csr" -out "$1.crt" \
		-extensions "$2" -startdate "$3" -enddate "$4"
}

new_key ca
openssl req -new -x509 -config ca.cnf -extensions v3_ca -key ca.key -days 3650 -out ca.crt
issue server here 20200101000000Z 20491231000000Z
issue wrong_host elsewhere 20200101000000Z 20491231000000Z
issue expired here 20200101000000Z 20200201000000Z
