"""`skillkit sign` and `skillkit verify`: who says that a skill is what it is, by OpenSSH keys."""

from __future__ import annotations

from pathlib import Path
from typing import Unpack

import click

from skillkit.cli import REFUSED
from skillkit.cli.options import SKILL, Places, json_option, manager_for, roots_options
from skillkit.cli.output import echo_json
from skillkit.core.models import Skill
from skillkit.core.models.digest import SIGNATURE_FILE
from skillkit.core.store.opening import open_store
from skillkit.core.store.skills import Installed, InstalledSkills
from skillkit.core.values.text import visible
from skillkit.sources.home import require_same_signer
from skillkit.sources.signatures import Signature, allowed_signers_file, check_signature, sign_skill, signature_in

__all__ = ["sign_command", "verify_command"]


@click.command("sign", short_help="Sign a skill as it is now, with your OpenSSH key.")
@click.argument("skill_name", metavar="SKILL", type=SKILL)
@click.option("--key", type=click.Path(exists=True, dir_okay=False, path_type=Path), required=True, help="Your key.")
@roots_options
@json_option
def sign_command(skill_name: str, key: Path, as_json: bool, **places: Unpack[Places]) -> None:
    """Sign a skill: its name, the digest of all that is in it, and the time, into SKILL.sig.

    The key is a private one, or a public one whose private key your ssh-agent has. Any change to the skill ends it.

    \b
    Examples:
      skillkit sign csv-report --key ~/.ssh/id_ed25519
    """
    with manager_for(places) as manager:
        skill = manager.load_skill(skill_name)
    signature = sign_skill(skill.base_directory, skill.name, skill.digest, key)
    if as_json:
        echo_json(skill=skill.name, digest=skill.digest, key=signature.key, signed_at=signature.moment)
        return
    click.echo(f"Signed {visible(skill.name)} with {signature.key}: {skill.base_directory / SIGNATURE_FILE}")


@click.command("verify", short_help="Say who signed a skill as it is now.")
@click.argument("skill_name", metavar="SKILL", type=SKILL)
@click.option(
    "--allowed-signers",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Whose keys are known, instead of ~/.ssh/allowed_signers.",
)
@click.option("--signer-changed", is_flag=True, help="Take another signer, none, or an older signature from now on.")
@roots_options
@json_option
@click.pass_context
def verify_command(
    ctx: click.Context,
    skill_name: str,
    allowed_signers: Path | None,
    signer_changed: bool,
    as_json: bool,
    **places: Unpack[Places],
) -> None:
    """Say who signed a skill as it is now; ends with 0 only if your allowed_signers know the key.

    The first signer of a skill is noted; another one, none, or an older signature is refused from then on.

    \b
    Examples:
      skillkit verify csv-report
      skillkit verify csv-report --allowed-signers ./team_signers
    """
    if signer_changed:
        from skillkit.cli.deciding import require_person

        require_person(places.get("state_dir"), "--signer-changed")
    with manager_for(places) as manager:
        skill, state = manager.load_skill(skill_name), manager.state_dir
    folder, allowed = skill.base_directory, allowed_signers_file(allowed_signers)
    found = check_signature(skill.name, skill.digest, signature_in(folder), allowed)
    store = open_store(state)
    try:
        installed = InstalledSkills(store)
        known = installed.of(folder, skill.name)
        if not signer_changed:
            require_same_signer(known, found, skill.name)
        if signer_changed or found.is_there:
            installed.require_right(found.key, known, is_changed=signer_changed)
            row = known or Installed(str(folder), skill.name, "")
            signed = skill.digest if found.is_there else ""
            installed.keep([row._replace(**found._asdict(), signed=signed)])
    finally:
        store.close()
    _show_signature(skill, found, allowed, as_json=as_json)
    ctx.exit(0 if found.signer else REFUSED)


def _show_signature(skill: Skill, found: Signature, allowed: Path | None, *, as_json: bool) -> None:
    if as_json:
        moment = found.moment if found.is_there else None
        echo_json(skill=skill.name, digest=skill.digest, signer=found.signer, key=found.key, signed_at=moment)
    elif found.signer:
        click.echo(f"{visible(skill.name)}: signed by {visible(found.signer)} at {found.moment} with {found.key}.")
    elif found.is_there:
        click.echo(
            f"{visible(skill.name)}: signed at {found.moment} with {found.key}, which nobody in "
            f"{allowed or '~/.ssh/allowed_signers'} has. Add a line for it there, if you know whose it is.",
            err=True,
        )
    else:
        click.echo(f"{visible(skill.name)} is not signed. 'skillkit sign' signs it.", err=True)
