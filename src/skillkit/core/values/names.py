"""Names of variables: which no script is ever given, which a skill cannot ask for, which are those of a secret."""

from __future__ import annotations

import re
import shlex
from functools import lru_cache

__all__ = ["grant_command", "is_grantable_name", "is_never_passed", "is_secret_name", "kind_of_name"]

# What may stand behind `skillkit grant` in the place of a skill.
GRANT_WORDS = ("add", "list", "remove")
NEVER_PASSED_PREFIXES = ("LD_", "DYLD_", "GIT_SSH", "DBUS_", "SKILLKIT_", "BASH_FUNC_")
NEVER_PASSED = frozenset(
    "PYTHONPATH PYTHONHOME PYTHONSTARTUP PYTHONWARNINGS PYTHONBREAKPOINT NODE_OPTIONS BASH_ENV ENV "
    "SHELLOPTS BASHOPTS PS4 "
    "PERL5OPT PERL5LIB PERL5DB PERL_USE_UNSAFE_INC RUBYOPT RUBYLIB BUNDLE_GEMFILE BUNDLE_APP_CONFIG GCONV_PATH "
    "OPENSSL_CONF OPENSSL_MODULES OPENSSL_ENGINES JAVA_TOOL_OPTIONS JDK_JAVA_OPTIONS _JAVA_OPTIONS "
    "SSH_AUTH_SOCK XDG_RUNTIME_DIR DOCKER_HOST".split()
)
# What skillkit itself sets or leads through walls; a skill that could choose them could leave by them.
OWN_PREFIXES = ("SKILL", "CLAUDE_SKILL_DIR", "CLAUDE_PROJECT_DIR", "CLAUDE_PLUGIN_ROOT", "LC_")
OWN = frozenset(
    "PATH HOME TMPDIR TMP TEMP LANG TZ PWD OLDPWD SHELL SHLVL IFS USERPROFILE PATHEXT COMSPEC SYSTEMROOT "
    "HTTP_PROXY HTTPS_PROXY ALL_PROXY FTP_PROXY NO_PROXY WS_PROXY WSS_PROXY NODE_USE_ENV_PROXY NODE_EXTRA_CA_CERTS "
    "SSL_CERT_FILE SSL_CERT_DIR REQUESTS_CA_BUNDLE CURL_CA_BUNDLE NODE_TLS_REJECT_UNAUTHORIZED "
    "NODE_PATH GEM_HOME GEM_PATH PERLLIB VIRTUAL_ENV CONDA_PREFIX "
    "DENO_DIR DENO_INSTALL_ROOT BUN_INSTALL BUN_OPTIONS".split()
)
# What else they read at their start: `PYTHONUSERBASE`, `PIP_INDEX_URL`, `npm_config_registry`, `GIT_CONFIG_GLOBAL`.
# Only what git itself reads: `GIT_TOKEN`, `GIT_AUTHOR_NAME` and `GIT_BRANCH` are data.
STEERING_PREFIXES = tuple(
    "PYTHON PIP_ UV_ NPM_CONFIG_ PNPM_CONFIG_ YARN_RC BASH_ ZDOTDIR RUSTC_ CARGO_BUILD_ CARGO_TARGET_ CORECLR_ "
    "COR_ENABLE COR_PROFILER GIT_CONFIG GIT_EXEC GIT_TRACE GIT_SSL_ GIT_PROXY GIT_HTTP_PROXY GIT_CURL_ GIT_REDIRECT_ "
    "GIT_ATTR_ GIT_ALTERNATE_ LUA_INIT LUA_PATH LUA_CPATH R_PROFILE R_ENVIRON R_LIBS R_DEFAULT_PACKAGES R_HISTFILE "
    "JULIA_LOAD_PATH JULIA_DEPOT_PATH JULIA_PROJECT JULIA_BINDIR GUILE_ PERL5 PERLIO DOTNET_STARTUP DOTNET_ROOT "
    "DOTNET_ADDITIONAL_DEPS DOTNET_SHARED_STORE LESSOPEN LESSCLOSE LESSKEY GTK_MODULES GTK_PATH GTK_IM_MODULE "
    "QT_PLUGIN_PATH QT_QPA_PLATFORM_PLUGIN_PATH GIO_EXTRA_MODULES GST_PLUGIN_ MAGICK_CODER MAGICK_CONFIGURE "
    "TERMINFO".split()
)
STEERING_ENDINGS = ("_PRELOAD", "_JAVA_OPTIONS", "_JAVA_OPTS", "_JVM_OPTIONS", "_JVM_OPTS")
STEERING = frozenset(
    "GLIBC_TUNABLES LOCPATH NLSPATH HOSTALIASES RESOLV_HOST_CONF GETCONF_DIR PHPRC PHP_INI_SCAN_DIR RUBYSHELL IRBRC "
    "PRYRC NODE_REPL_EXTERNAL_MODULE TS_NODE_PROJECT JAVA_OPTS CLASSPATH MAVEN_OPTS MAVEN_ARGS GRADLE_OPTS ANT_OPTS "
    "SBT_OPTS SCALA_OPTS KOTLIN_OPTS ERL_LIBS ERL_INETRC ELIXIR_ERL_OPTIONS TCLLIBPATH TCL_LIBRARY TK_LIBRARY GHCRTS "
    "GHC_PACKAGE_PATH GOFLAGS OCAMLRUNPARAM CAML_LD_LIBRARY_PATH OCTAVE_SITE_INITFILE OCTAVE_VERSION_INITFILE "
    "MATLABPATH MALLOC_CONF MALLOC_TRACE EMACSLOADPATH VIMINIT GVIMINIT EXINIT MYVIMRC VIM VIMRUNTIME AWKPATH "
    "AWKLIBPATH MAKEFLAGS MAKEFILES GNUMAKEFLAGS EDITOR VISUAL BROWSER PAGER MANPAGER MANROFFOPT SYSTEMD_PAGER "
    "GH_PAGER GH_EDITOR GH_BROWSER AWS_PAGER LESS GIT_DIR GIT_WORK_TREE GIT_COMMON_DIR GIT_INDEX_FILE "
    "GIT_OBJECT_DIRECTORY GIT_TEMPLATE_DIR GIT_EXTERNAL_DIFF GIT_PAGER GIT_EDITOR GIT_SEQUENCE_EDITOR GIT_ASKPASS "
    "GIT_ALLOW_PROTOCOL GIT_PROTOCOL_FROM_USER GIT_GRAFT_FILE GIT_SHALLOW_FILE GIT_NAMESPACE GIT_TEXTDOMAINDIR "
    "GIT_DIFF_OPTS SSH_ASKPASS SUDO_ASKPASS TAR_OPTIONS ZIPOPT UNZIP RSYNC_RSH CVS_RSH RSYNC_CONNECT_PROG TERMCAP "
    "PROMPT_COMMAND CDPATH GLOBIGNORE CURL_HOME WGETRC ACKRC RIPGREP_CONFIG_PATH PSQLRC GDBINIT XDG_CONFIG_HOME "
    "XDG_CONFIG_DIRS XDG_DATA_HOME XDG_DATA_DIRS".split()
)
_ERLANG_FLAGS = re.compile(r"ERL_\w*FLAGS")
VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,99}")

# The last part of a name that says the value is a secret: password, db_password, dbPassword, DBPASSWORD.
SECRET_ENDINGS = tuple(
    """
    password passwd passwrd passphrase passcode passkey passwort kennwort contrasena motdepasse senha wachtwoord
    salasana heslo pass pwd pw secret token apikey appkey authkey accesskey secretkey privatekey privkey signingkey
    encryptionkey decryptionkey cryptokey aeskey rsakey hmackey masterkey accountkey sharedkey presharedkey
    sessionkey sshkey deploykey servicekey storagekey subscriptionkey functionkey functionskey clientkey consumerkey
    webhookkey licensekey licencekey activationkey integrationkey writekey adminkey botkey accesscode authcode
    securitycode verificationcode recoverycode backupcode accesssignature authorization cookie credential bearer jwt
    otp totp psk mnemonic seedphrase recoveryphrase clientassertion samlresponse sessionid sessid
    """.split()
)
SECRET_WORDS = frozenset(("auth", "cred", "creds", "csrf", "oauth", "pass", "session", "sid", "xsrf"))
# In other letters; a name holds them whole.
FOREIGN_WORDS = tuple("contraseña lösenord hasło пароль 密码 密碼 口令 パスワード 비밀번호".split())
# They end as a secret's name does, and are none.
ORDINARY_WORDS = frozenset("bypass compass encompass multipass overpass surpass trespass underpass".split())
# A value under such a name is a secret where it looks like one: key, public_key, signature.
WEAK_ENDINGS = ("key", "sig", "signature", "salt", "seed", "hmac", "sas")
# A name that ends so speaks about a secret without holding one: token_count, password_file.
HARMLESS_ENDINGS = frozenset(
    """
    age attempts budget changed class count counter dir directory disabled enabled endpoint endpoints expired
    expires expiry expiration field file files folder format hint index kind label len length lifetime limit max
    method min minutes mode name names optional path pattern placeholder policy prefix prompt provider regex
    required reset rotation rule rules scheme scope scopes seconds size status strength suffix template timeout ttl
    type types uri url usage version
    """.split()
)

_NAME_PARTS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")


def is_never_passed(name: str) -> bool:
    """Names through which a value takes over the program that is started, or opens a door of the user's."""
    return name in NEVER_PASSED or name.startswith(NEVER_PASSED_PREFIXES)


def is_grantable_name(name: str) -> bool:
    """Whether a skill may need it and a person give it: not what steers loaders, start-up, proxies or our own names."""
    upper = name.upper()
    steers = (
        upper in OWN
        or upper in STEERING
        or upper.startswith(OWN_PREFIXES + STEERING_PREFIXES)
        or upper.endswith(STEERING_ENDINGS)
        or _ERLANG_FLAGS.fullmatch(upper) is not None
    )
    return bool(VARIABLE.fullmatch(name)) and not steers and not is_never_passed(upper)


def is_secret_name(name: str) -> bool:
    """Whether a variable of this name holds a key: masked, and given only as a secret."""
    kind = kind_of_name(name)
    return kind == "secret" or (kind == "weak" and name.lower().endswith("key"))


@lru_cache(maxsize=1024)
def kind_of_name(name: str) -> str:
    """`secret`; `counted` where a number is none; `weak` where only what looks random is one; else empty."""
    parts = [part.lower() for part in _NAME_PARTS.findall(name)]
    if not name.isascii() and any(word in name.lower() for word in FOREIGN_WORDS):
        return "secret"
    if not parts or parts[-1] in HARMLESS_ENDINGS:
        return ""
    if not SECRET_WORDS.isdisjoint(parts):
        return "secret"
    joined = ""
    for part in parts:
        joined += part
        is_named = joined.endswith(SECRET_ENDINGS) or joined.removesuffix("s").endswith(SECRET_ENDINGS)
        if is_named and part not in ORDINARY_WORDS:
            return "counted" if "tokens" in parts else "secret"
    return "weak" if joined.endswith(WEAK_ENDINGS) else ""


def grant_command(skill: str) -> str:
    """As it is typed; a skill named like one of the words that may stand there needs the word before it."""
    return f"skillkit grant {'add ' if skill in GRANT_WORDS else ''}{shlex.quote(skill)}"
