//! `--user`: from the user that may open low ports to one that may not.

use std::fmt;

/// Whom the process is to be, looked up before anything is given up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Identity {
    /// As it was given.
    given: String,
    user: u32,
    group: u32,
    name: String,
}

impl fmt::Display for Identity {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} (user {}, group {})", self.name, self.user, self.group)
    }
}

impl Identity {
    /// The user's number.
    pub(super) fn user(&self) -> u32 {
        self.user
    }
}

#[cfg(target_os = "linux")]
mod linux {
    use std::ffi::CString;
    use std::fs::File;

    use nix::unistd::{Gid, Group, Uid, User};

    use super::Identity;

    impl Identity {
        /// Looks up `NAME` or `NAME:GROUP`, each a name or a number.
        pub(in crate::serve) fn find(given: &str) -> Result<Self, String> {
            let mistake = |what: String| format!("--user {given}: {what}");
            let (name, group) = match given.split_once(':') {
                Some((name, group)) => (name, Some(group)),
                None => (given, None),
            };
            let number = name.parse::<u32>().ok();
            let user = match number {
                Some(number) => User::from_uid(Uid::from_raw(number)),
                None => User::from_name(name),
            };
            let user =
                user.map_err(|error| mistake(format!("users can't be looked up: {error}")))?;
            let user = user.ok_or_else(|| mistake(format!("there is no user `{name}`")))?;
            let group = match group {
                None => user.gid,
                Some(group) => find_group(group).map_err(mistake)?,
            };
            if user.uid.is_root() {
                return Err(mistake("root keeps all privileges: name another user".to_owned()));
            }
            let (user, name) = (user.uid.as_raw(), user.name);
            Ok(Self { given: given.to_owned(), user, group: group.as_raw(), name })
        }

        /// Returns whether the process is this user already, as the successor of one that became it.
        fn is_current(&self) -> bool {
            let (user, group) = (Uid::from_raw(self.user), Gid::from_raw(self.group));
            Uid::current() == user && Uid::effective() == user && Gid::effective() == group
        }

        /// Checks whether the process may become this user.
        pub(in crate::serve) fn check(&self) -> Result<(), String> {
            if Uid::effective().is_root() || self.is_current() {
                return Ok(());
            }
            Err(format!(
                "--user {}: only root can switch to another user, and this process is user {}: start it as \
                 root, or remove --user",
                self.given,
                Uid::effective()
            ))
        }

        /// Becomes this user for good: no thread has been started yet, so that none is left behind. `owned`:
        /// files that it is to own.
        pub(in crate::serve) fn assume(&self, owned: &[&File]) -> Result<(), String> {
            let failed = |what: &str, error: &dyn std::fmt::Display| {
                format!("--user {}: {what}: {error}", self.given)
            };
            let (user, group) = (Uid::from_raw(self.user), Gid::from_raw(self.group));
            rustix::thread::set_no_new_privs(true)
                .map_err(|error| failed("can't rule out new privileges", &error))?;
            if self.is_current() {
                return Ok(());
            }
            for file in owned {
                nix::unistd::fchown(file, Some(user), Some(group))
                    .map_err(|error| failed("can't give it a file", &error))?;
            }
            let name = CString::new(self.name.as_str())
                .map_err(|error| failed("can't use its name", &error))?;
            nix::unistd::initgroups(&name, group)
                .map_err(|error| failed("can't set its groups", &error))?;
            nix::unistd::setgid(group).map_err(|error| failed("can't set its group", &error))?;
            nix::unistd::setuid(user).map_err(|error| failed("can't switch to it", &error))?;
            let comes_back = nix::unistd::setuid(Uid::from_raw(0)).is_ok()
                || (self.group != 0 && nix::unistd::setgid(Gid::from_raw(0)).is_ok());
            if comes_back || !self.is_current() {
                return Err(failed("root could be regained", &"refusing to serve"));
            }
            Ok(())
        }
    }

    fn find_group(name: &str) -> Result<Gid, String> {
        if let Ok(number) = name.parse::<u32>() {
            return Ok(Gid::from_raw(number));
        }
        let group = Group::from_name(name);
        let group = group.map_err(|error| format!("groups can't be looked up: {error}"))?;
        group.map(|group| group.gid).ok_or_else(|| format!("there is no group `{name}`"))
    }
}

#[cfg(not(target_os = "linux"))]
mod elsewhere {
    use std::fs::File;

    use super::Identity;

    impl Identity {
        pub(in crate::serve) fn find(given: &str) -> Result<Self, String> {
            Err(format!("--user {given}: only available on Linux"))
        }

        pub(in crate::serve) fn check(&self) -> Result<(), String> {
            Ok(())
        }

        pub(in crate::serve) fn assume(&self, _: &[&File]) -> Result<(), String> {
            Ok(())
        }
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn users_and_groups_are_looked_up() {
        let nobody = Identity::find("nobody").unwrap();
        assert_eq!((nobody.user, nobody.name.as_str()), (65534, "nobody"));
        assert_eq!(Identity::find("65534").unwrap().user, 65534);
        let other = Identity::find("nobody:daemon").unwrap();
        assert_ne!(other.group, nobody.group);
        assert_eq!(Identity::find("nobody:4711").unwrap().group, 4711);
        let refused = |given: &str| Identity::find(given).unwrap_err();
        assert_eq!(refused("no-such-user"), "--user no-such-user: there is no user `no-such-user`");
        assert_eq!(
            refused("nobody:no-such-group"),
            "--user nobody:no-such-group: there is no group `no-such-group`"
        );
        assert!(refused("root").contains("root keeps all privileges"));
    }
}
